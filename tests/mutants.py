"""Mutation testing: small mistakes put into a module one after the other, and who notices.

    pip install cosmic-ray
    python tests/mutants.py onlstm/cumax onlstm/step --output runs/mutants
    python tests/mutants.py parsing/votes --sample 100 --seed 1 --output runs/mutants

Cosmic Ray makes the mistakes, in a copy of the tree. A mutant is killed when a test of its module
fails on one of its backends, or takes three times as long as without a mistake; the others are
printed. Of what Cosmic Ray puts in the place of a binary operator one mistake each is tried: with
most of the others nothing would run at all.
"""

import argparse
import contextlib
import functools
import importlib
import importlib.util
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 1800  # seconds that the tests of a module may take without a mistake
CONFIG = """
[cosmic-ray]
module-path = "keras_onlstm/{}.py"
timeout = {}.0
excluded-modules = []
test-command = {}
[cosmic-ray.distributor]
name = "local"
"""

# What notices mistakes in a module: backends, and tests, those that find most first.
LAYER = ["test_fused.py", "test_layer.py", "test_layer_masks.py", "test_layer_dropout.py"]
MORE = ["test_fuzz_recurrence.py", "test_empty.py", "test_derivatives.py", "test_layer_keras.py"]
EVERY = ("torch", "tensorflow")
TESTS = {
    "onlstm/cumax": (EVERY, ["test_cumax.py", "test_cell.py"]),
    "onlstm/gates": (EVERY, ["test_cell.py", "test_compact.py", "test_reference.py", *LAYER]),
    "onlstm/step": (EVERY, ["test_cell.py", "test_reference.py", "test_layer.py"]),
    "onlstm/cell": (EVERY, ["test_cell.py", "test_layer_arguments.py", *LAYER[1:], *MORE]),
    "onlstm/recurrence/__init__": (EVERY, ["test_single.py", *LAYER]),
    "onlstm/recurrence/fused": (EVERY, [*LAYER, *MORE]),
    "onlstm/recurrence/fused_step": (EVERY, [*LAYER, *MORE]),
    "onlstm/recurrence/fused_torch": (EVERY[:1], [*LAYER, *MORE]),
    "onlstm/recurrence/fused_jax": (("jax",), ["test_fused_jax.py", *LAYER, *MORE]),
    "onlstm/recurrence/fused_tensorflow": (EVERY[1:], [*LAYER, *MORE, "test_graphs.py"]),
    "onlstm/recurrence/fused_groups": (EVERY[1:], [*LAYER, *MORE]),
    "onlstm/recurrence/reference": (EVERY, [*LAYER, *MORE, "test_reference.py", "test_single.py"]),
    "utils/differentiable": (EVERY, ["test_loops.py", *LAYER, *MORE]),
    "utils/for_tensorflow": (EVERY[1:], ["test_loops.py", *LAYER[1:3], MORE[1]]),
    "parsing/trees": (EVERY[:1], ["test_parsing.py"]),
    "parsing/scores": (EVERY[:1], ["test_parsing.py"]),
    "parsing/votes": (EVERY[:1], ["test_votes.py"]),
    "parsing/report": (EVERY[:1], ["test_report.py", "test_pictures.py"]),
    "parsing/pictures": (EVERY[:1], ["test_picture_values.py", "test_pictures.py"]),
}
BINARY = {"Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul", "Mod_Mul", "Pow_Mul"}
BINARY |= {"BitAnd_BitOr", "BitOr_BitAnd", "BitXor_BitOr", "LShift_RShift", "RShift_LShift"}
UNARY = {"USub_UAdd", "Delete_Not", "USub_Not"}


def is_tried(operator):
    name = operator.removeprefix("core/")
    for kind, kept in (("ReplaceBinaryOperator_", BINARY), ("ReplaceUnaryOperator_", UNARY)):
        if name.startswith(kind):
            return name.removeprefix(kind) in kept
    return True


# --- A process in which all but the package is imported: tests run in a fork of it --------------


def serve(address, backend, mutated):
    os.environ |= {"KERAS_BACKEND": backend, "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    os.environ.setdefault("KERAS_ONLSTM_DATA", str(ROOT.parent / "shared"))
    for library in ("keras", "nltk", "tensorflow", "hypothesis", "hypothesis.strategies", "pytest"):
        importlib.import_module(library)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        while True:
            connection, _ = listener.accept()
            with connection:
                asked = json.loads(connection.recv(2**16))
                # Bytecode knows its source by the second and the size, which mutants may share.
                Path(importlib.util.cache_from_source(mutated)).unlink(missing_ok=True)
                connection.sendall(str(answer(asked)).encode())


def answer(asked):
    """The exit status of pytest with these arguments in that directory."""
    child = os.fork()
    if child == 0:
        os.setsid()
        os.chdir(asked["directory"])
        sys.path[:0] = [asked["directory"], f"{asked['directory']}/tests"]
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        import pytest

        os._exit(pytest.main(asked["arguments"]))
    end = time.monotonic() + asked["seconds"]
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 1


def ask(address, seconds, arguments):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        asked = {"directory": os.getcwd(), "seconds": seconds, "arguments": arguments}
        connection.sendall(json.dumps(asked).encode())
        sys.exit(connection.recv(100) != b"0")


# -------------------------------------------------------------------------------------------------


def place_of(item):
    """What a mutant is, whenever it was numbered."""
    (mutation,) = item.mutations
    return mutation.start_pos, mutation.operator_name, mutation.occurrence


def sampled(items, sample, seed):
    """The places of the mutants to try."""
    places = sorted(place_of(i) for i in items if is_tried(i.mutations[0].operator_name))
    if sample is not None and sample < len(places):
        places = random.Random(seed).sample(places, sample)
    return places


def mutate(module, backend, copy, output, choose):
    """Tries mutants of a module on a backend.

    Args:
        module: one of `TESTS`.
        backend: of Keras.
        copy: `Path` of a tree in which the module is changed.
        output: `Path` of the directory for Cosmic Ray's databases; what is there goes on.
        choose: function from all mutants to the places of those to try.

    Returns:
        Dictionary from the place of each that was tried to its difference, or to `None` if it was
        killed.
    """
    from cosmic_ray.work_db import WorkDB, use_db
    from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult

    name = f"{module.replace('/', '_')}-{backend}"
    config, database = copy / f"{name}.toml", output / f"{name}.sqlite"
    cosmic_ray = [sys.executable, "-m", "cosmic_ray.cli"]
    with server(module, backend, copy) as (address, process):
        ask = [sys.executable, __file__, "--ask", address]
        tests = ["-x", "-q", "-p", "no:xdist", "--assert=plain"]
        tests += [f"tests/{name}" for name in TESTS[module][1]]
        start = time.monotonic()
        if subprocess.run([*ask, str(LONGEST), *tests], cwd=copy).returncode:
            raise SystemExit(f"{module}, {backend}: its tests fail without a mistake")
        seconds = round(20 + 3 * (time.monotonic() - start))
        command = " ".join([*ask, str(seconds), *tests])
        config.write_text(CONFIG.format(module, 2 * seconds, json.dumps(command)))
        if not database.exists():
            subprocess.run([*cosmic_ray, "init", config, database], cwd=copy, check=True)
            with use_db(database, WorkDB.Mode.open) as db:
                items = list(db.pending_work_items)
                chosen = set(choose(items))
                for item in items:
                    if place_of(item) not in chosen:
                        skipped = WorkResult(WorkerOutcome.SKIPPED, output="not tried")
                        db.set_result(item.job_id, skipped)
        subprocess.run([*cosmic_ray, "exec", config, database], cwd=copy, check=True)
        if process.poll() is not None:  # since when every mutant seemed to be killed
            database.unlink()
            raise SystemExit(f"{module}, {backend}: what ran its tests has ended; none counts")
    with use_db(database, WorkDB.Mode.open) as db:
        places = {item.job_id: place_of(item) for item in db.work_items}
        return {
            places[job]: result.diff if result.test_outcome == TestOutcome.SURVIVED else None
            for job, result in db.results
            if result.worker_outcome != WorkerOutcome.SKIPPED
        }


@contextlib.contextmanager
def server(module, backend, copy):
    """The address of a process that answers `ask`, and the process."""
    address, mutated = str(copy / "socket"), copy / f"keras_onlstm/{module}.py"
    command = [sys.executable, __file__, "--serve", address, backend, mutated]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while not os.path.exists(address) and process.poll() is None:
            time.sleep(0.1)
        try:
            yield address, process
        finally:
            process.kill()
            os.unlink(address)


def main():
    if sys.argv[1:2] == ["--serve"]:
        return serve(*sys.argv[2:])
    if sys.argv[1:2] == ["--ask"]:
        return ask(sys.argv[2], float(sys.argv[3]), sys.argv[4:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="+", choices=TESTS, metavar="MODULE")
    parser.add_argument("--sample", type=int, help="of each module's mutants; default: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    output = options.output.resolve()
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "copy"
        ignored = shutil.ignore_patterns(".*", "__pycache__", "runs", "site", "node_modules")
        shutil.copytree(ROOT, copy, ignore=ignored)
        for module in options.modules:
            tried, left = 0, None
            for backend in TESTS[module][0]:
                if left is None:
                    choose = functools.partial(sampled, sample=options.sample, seed=options.seed)
                else:
                    choose = functools.partial(lambda survivors, _: survivors, list(left))
                found = mutate(module, backend, copy, output, choose)
                tried = max(tried, len(found))
                left = {place: diff for place, diff in found.items() if diff}
                if not left:
                    break
            print(*left.values(), sep="\n")
            print(json.dumps({"module": module, "tried": tried, "survived": len(left)}), flush=True)


if __name__ == "__main__":
    main()
