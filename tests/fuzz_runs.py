"""Kills trainers and exports at random moments, and looks at what they leave.

    python tests/fuzz_runs.py --seed 0 --count 30

on the backend that `KERAS_BACKEND` names, TensorFlow if it names none. A trainer is killed and
resumed until it is done; then its checkpoint has to hold the bits of a run that was never killed.
After every kill, whatever has its name is whole.
"""

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from commands import EXAMPLES, ROOT, environment
from keras_onlstm import runtime

# A script whose checkpoints come four times a second, so that few kills find it where it was.
DRIVER = """
import runpy, sys
from keras_onlstm import training
from keras_onlstm.training import trainer

class Trainer(trainer.Trainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs, checkpoint_seconds=0.25, verbose=False)

training.Trainer = trainer.Trainer = Trainer
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""
LONGEST = 500  # seconds until something is written, on a machine that has much else to do


class Target(NamedTuple):
    """A command that is killed.

    Attributes:
        script: its path.
        backend: of Keras.
        writes: names of files while whose writing it is killed now and then.
    """

    script: Path
    backend: str
    writes: tuple

    @property
    def trains(self):
        return self.script.parent == EXAMPLES

    @property
    def name(self):
        return f"{self.script.stem}, {self.backend}"


EXPORT = Target(ROOT / "export" / "to_onnx.py", "tensorflow", ("step.onnx", "layer.onnx"))


def targets(backend):
    """What is killed on a backend: the trainers, and the export where it runs."""
    trainers = [
        Target(EXAMPLES / f"{name}.py", backend, ("best.keras", "checkpoint.npz"))
        for name in ("logic_inference", "language_modeling", "dependency_language_model")
    ]
    return trainers + [EXPORT] * (backend == EXPORT.backend)


def start(target, directory):
    arguments = [target.script, "--output", directory]
    if target.trains:
        arguments = ["-c", DRIVER, *arguments]
        resume = (directory / "config.json").is_file()
        arguments += ["--resume"] if resume else ["--preset", "smoke"]
    else:
        arguments += ["--preset", "smoke", "--graph", "step", "--graph", "layer"]
    variables = {
        "KERAS_BACKEND": target.backend,
        # Compiling takes JAX minutes: what one process compiled serves the next ones.
        "JAX_COMPILATION_CACHE_DIR": str(directory.parent / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment() | variables,
        text=True,
    )


def finish(target, directory):
    """Lets a command come to its end; the complaint, if any."""
    with start(target, directory) as process:
        output = process.communicate()[0]
    return (
        None if process.returncode == 0 else f"exit status {process.returncode}: {output[-2000:]}"
    )


def has_moment(directory, moment, before):
    """Whether a file is being written now, or the checkpoint is another than before."""
    if moment is not None:
        return any(directory.glob(f".{moment}.*.part/{moment}"))
    return stamp(directory) != before


def stamp(directory):
    path = directory / "checkpoint.npz"
    return path.stat().st_mtime_ns if path.is_file() else None


def kill(target, directory, draw):
    """Starts a command and kills it: whether it was killed at all, and at what."""
    moment = (
        draw.choice([None, None, *target.writes]) if target.trains else draw.choice(target.writes)
    )
    delay = draw.uniform(0, 1) if moment is None else draw.choice([0, draw.uniform(0, 0.05)])
    before = stamp(directory)
    with start(target, directory) as process:
        end = time.monotonic() + LONGEST
        while process.poll() is None and not has_moment(directory, moment, before):
            if time.monotonic() > end:
                break
            time.sleep(0.0005)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    return process.returncode == -signal.SIGKILL, moment or "anywhere"


def broken(directory):
    """What is there under its name and not whole: lines."""
    found = []
    for path in sorted(directory.rglob("*")):
        if path.is_dir() or any(part.startswith(".") for part in path.relative_to(directory).parts):
            continue
        try:
            if path.suffix in (".npz", ".keras"):
                with zipfile.ZipFile(path) as archive:
                    assert archive.testzip() is None and archive.namelist()
            elif path.suffix == ".json":
                json.loads(path.read_text())
            elif path.suffix == ".onnx":
                runtime.load(path)
            else:
                assert path.stat().st_size > 0
        except Exception as error:
            found.append(f"{path.name}: {error!r}")
    return found


def arrays_of(directory):
    """Digests of the variables in a checkpoint, and its state without times."""
    with np.load(directory / "checkpoint.npz") as file:
        arrays = {name: file[name] for name in file.files}
    state = json.loads(arrays.pop("state.json").tobytes())
    for row in state["history"]:
        del row["seconds"]
    return {name: hashlib.sha256(a.tobytes()).hexdigest() for name, a in arrays.items()}, state


def weights_of(directory):
    """The arrays of best.keras."""
    import h5py

    found = []
    with (
        zipfile.ZipFile(directory / "best.keras") as archive,
        archive.open("model.weights.h5") as member,
        h5py.File(member) as file,
    ):
        file.visititems(
            lambda name, item: (
                found.append((name, item[()].tobytes())) if isinstance(item, h5py.Dataset) else None
            )
        )
    return found


def results_of(directory):
    """What a finished run has to have in common with one that was never killed."""
    return {
        "the checkpoint": arrays_of(directory),
        "best.keras": weights_of(directory),
        "results.json": json.loads((directory / "results.json").read_text()),
    }


def fuzz(target, kills, seed, directory):
    """Kills a target so many times.

    Args:
        target: `Target`.
        kills: number of times.
        seed: of the moments.
        directory: `Path`, empty.

    Returns:
        Counts by what was being done, and findings: lines.
    """
    draw, counts, findings = random.Random(f"{seed} {target.name}"), Counter(), []
    whole = directory / "whole"
    complaint = finish(target, whole)
    if complaint:
        return counts, [f"{target.name}: not killed at all, {complaint}"]
    number = 0
    while sum(counts.values()) < kills:
        number += 1
        run, ended = directory / f"killed {number}", False
        while not ended and sum(counts.values()) < kills:
            killed, moment = kill(target, run, draw)
            ended = not killed
            counts[moment] += killed
            findings += [f"{target.name}, killed at {moment}: {line}" for line in broken(run)]
        complaint = finish(target, run)
        if complaint:
            findings.append(f"{target.name}, after a kill: {complaint}")
        elif target.trains:
            expected = results_of(whole)
            findings += [
                f"{target.name}: {name} differs from that of a run that was never killed"
                for name, found in results_of(run).items()
                if found != expected[name]
            ]
        elif {path.name for path in run.glob("*.onnx")} != set(target.writes):
            findings.append(f"{target.name}: {sorted(run.iterdir())}")
    return counts, findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=30, help="kills (default: 30)")
    options = parser.parse_args()
    chosen, found = targets(os.environ.get("KERAS_BACKEND") or "tensorflow"), {}
    for place, target in enumerate(chosen):
        kills = len(range(place, options.count, len(chosen)))
        with tempfile.TemporaryDirectory() as directory:
            counts, findings = fuzz(target, kills, options.seed, Path(directory))
        for line in findings:
            print(f"--seed {options.seed} --count {options.count}: {line}", flush=True)
        found[target.name] = {**counts, "findings": len(findings)}
    total = sum(counts["findings"] for counts in found.values())
    kills = sum(sum(counts.values()) for counts in found.values()) - total
    print(json.dumps({"kills": kills, "findings": total, "by_target": found}))
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()
