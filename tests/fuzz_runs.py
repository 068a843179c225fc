"""Kills trainers at random moments, resumes them, and compares the results.

    python tests/fuzz_runs.py --seed 0 --count 30

on the backend of `KERAS_BACKEND`, by default TensorFlow. After every kill all files must be
complete. At the end the checkpoint must equal that of an uninterrupted run bit for bit.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np

from helpers.commands import EXAMPLES, environment

# Writes a checkpoint four times a second, so that most kills come after a new one.
DRIVER = """
import runpy, sys
from keras_onlstm import training
from keras_onlstm.training import trainer

class Trainer(trainer.Trainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs | {"checkpoint_seconds": 0.25, "verbose": False})

training.Trainer = trainer.Trainer = Trainer
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""
SCRIPTS = ("logic_inference", "language_modeling", "dependency_language_model")
LONGEST = 500  # seconds until something is written, on a busy machine


def start(script, directory):
    """Starts or resumes a run."""
    resume = (directory / "config.json").is_file()
    arguments = ["-c", DRIVER, EXAMPLES / f"{script}.py", "--output", directory]
    variables = {
        "KERAS_BACKEND": os.environ.get("KERAS_BACKEND") or "tensorflow",
        # JAX compiles for minutes; later processes use what the first one compiled.
        "JAX_COMPILATION_CACHE_DIR": str(directory.parent / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    return subprocess.Popen(
        [
            sys.executable,
            *map(str, arguments),
            *(["--resume"] if resume else ["--preset", "debug"]),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment() | variables,
        text=True,
    )


def finish(script, directory):
    """Runs to the end and lists the failures."""
    with start(script, directory) as process:
        output = process.communicate()[0]
    return [f"exit status {process.returncode}: {output[-2000:]}"] * (process.returncode != 0)


def kill(script, directory, draw):
    """Starts a run and kills it after a new checkpoint, or while a file is written."""
    path = directory / "checkpoint.npz"
    written = draw.choice((None, None, "best.keras", path.name))
    before = path.stat().st_mtime_ns if path.is_file() else None

    def has_come():
        if written is not None:
            return any(directory.glob(f".{written}.*.part/{written}"))
        return path.is_file() and path.stat().st_mtime_ns != before

    with start(script, directory) as process:
        end = time.monotonic() + LONGEST
        while process.poll() is None and not has_come() and time.monotonic() < end:
            time.sleep(0.0005)
        time.sleep(
            draw.uniform(0, 1) if written is None else draw.choice([0, 0.05 * draw.random()])
        )
        process.send_signal(signal.SIGKILL)
        process.communicate()
    return process.returncode == -signal.SIGKILL


def incomplete(directory):
    """Yields the incomplete files of a run."""
    for path in sorted(directory.iterdir()):
        try:
            if path.suffix in (".npz", ".keras"):
                with zipfile.ZipFile(path) as archive:
                    assert archive.testzip() is None and archive.namelist()
            elif path.suffix == ".json":
                json.loads(path.read_text())
        except Exception as error:
            yield f"{path.name}: {error!r}"


def results(directory):
    """The results of a run that must match those of an uninterrupted run."""
    with np.load(directory / "checkpoint.npz") as file:
        arrays = {name: file[name].tobytes() for name in file.files}
    state = json.loads(arrays.pop("state.json"))
    for row in state["history"]:
        del row["seconds"]
    with zipfile.ZipFile(directory / "best.keras") as archive:
        best = archive.getinfo("model.weights.h5").CRC
    return arrays, state, best, json.loads((directory / "results.json").read_text())


def fuzz(script, kills, seed, directory):
    """Kills runs of a script `kills` times and lists the failures."""
    draw, done, number = random.Random(f"{seed} {script}"), 0, 0
    findings = finish(script, directory / "whole")
    while done < kills and not findings:
        number += 1
        run, killed = directory / f"killed {number}", True
        while killed and done < kills:
            killed = kill(script, run, draw)
            done += killed
            findings += incomplete(run)
        findings += finish(script, run)
        if not findings and results(run) != results(directory / "whole"):
            findings.append("the results differ from those of an uninterrupted run")
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=30, help="kills (default: 30)")
    options = parser.parse_args()
    findings = []
    for script in SCRIPTS:
        with tempfile.TemporaryDirectory() as directory:
            found = fuzz(script, options.count // len(SCRIPTS), options.seed, Path(directory))
        findings += [f"{script}: {finding}" for finding in found]
    print(*findings, sep="\n")
    print(json.dumps({"kills": options.count, "findings": len(findings)}))
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
