"""Mutation testing: small mistakes put into a module one after the other, and who notices.

    pip install cosmic-ray
    python tests/mutants.py cumax step --output runs/mutants
    python tests/mutants.py parsing/votes --sample 100 --seed 1 --output runs/mutants

Cosmic Ray makes the mistakes, in a copy of the tree. A mutant is killed when a test of its module
fails, or takes more than two minutes; the others are printed. Of what Cosmic Ray puts in the place
of a binary operator one mistake each is tried: with most of the others nothing would run at all.
"""

import argparse
import contextlib
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
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 120

# What notices mistakes in a module: the backend, and tests, those that find most first.
LAYER = ["test_fused.py", "test_layer.py", "test_layer_masks.py", "test_layer_dropout.py"]
MORE = ["test_fuzz_recurrence.py", "test_empty.py", "test_derivatives.py", "test_layer_keras.py"]
PARSING = ["test_parsing.py", "test_votes.py", "test_ensemble.py"]
TESTS = {
    "cumax": ("torch", ["test_cumax.py", "test_cell.py"]),
    "step": ("torch", ["test_cell.py", "test_reference.py", "test_layer.py"]),
    "cell": (
        "torch",
        ["test_cell.py", "test_layer_arguments.py", *LAYER[1:], "test_layer_keras.py"],
    ),
    "recurrence/fused": ("torch", [*LAYER, *MORE]),
    "recurrence/fused_torch": ("torch", [*LAYER, *MORE]),
    "recurrence/fused_jax": ("jax", [*LAYER, *MORE]),
    "recurrence/fused_tensorflow": ("tensorflow", [*LAYER, *MORE, "test_graphs.py"]),
    "recurrence/grouped": ("jax", [*LAYER, *MORE]),
    "recurrence/reference": ("torch", [*LAYER, *MORE, "test_reference.py"]),
    "recurrence/scan": ("tensorflow", [*LAYER, *MORE]),
    "recurrence/single": ("tensorflow", ["test_graphs.py", "test_onnx.py", *LAYER]),
    "recurrence/tensorflow": ("tensorflow", [*LAYER, *MORE]),
    "parsing/trees": ("torch", PARSING),
    "parsing/scores": ("torch", PARSING),
    "parsing/votes": ("torch", PARSING),
    "parsing/report": ("torch", [*PARSING, "test_unsupervised_parsing.py"]),
    "parsing/pictures": ("torch", ["test_pictures.py"]),
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
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return 1


def ask(address, arguments):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        asked = {"directory": os.getcwd(), "arguments": arguments}
        connection.sendall(json.dumps(asked).encode())
        sys.exit(connection.recv(100) != b"0")


# -------------------------------------------------------------------------------------------------


def mutate(module, sample, seed, address, copy, output):
    """Counts of what became of the mutants of a module, and those that survived, as diffs."""
    from cosmic_ray.work_db import WorkDB, use_db
    from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult

    name = module.replace("/", "_")
    config, database = copy / f"{name}.toml", output / f"{name}.sqlite"
    arguments = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain"]
    command = [
        sys.executable,
        __file__,
        "--ask",
        address,
        *arguments,
        *(f"tests/{t}" for t in TESTS[module][1]),
    ]
    config.write_text(f"""
[cosmic-ray]
module-path = "keras_onlstm/{module}.py"
timeout = {2 * SECONDS}.0
excluded-modules = []
test-command = {json.dumps(" ".join(command))}
[cosmic-ray.distributor]
name = "local"
""")
    cosmic_ray = [sys.executable, "-m", "cosmic_ray.cli"]
    if subprocess.run(command, cwd=copy).returncode:
        raise SystemExit(f"{module}: its tests fail without a mistake")
    if not database.exists():
        subprocess.run([*cosmic_ray, "init", config, database], cwd=copy, check=True)
        with use_db(database, WorkDB.Mode.open) as db:
            items = list(db.pending_work_items)
            chosen = chosen_of(items, sample, seed)
            for item in items:
                if item.job_id not in chosen:
                    skipped = WorkResult(WorkerOutcome.SKIPPED, output="not tried")
                    db.set_result(item.job_id, skipped)
    subprocess.run([*cosmic_ray, "exec", config, database], cwd=copy, check=True)
    counts, survivors = Counter(), []
    with use_db(database, WorkDB.Mode.open) as db:
        for _, result in db.results:
            if result.worker_outcome == WorkerOutcome.SKIPPED:
                continue
            survived = result.test_outcome == TestOutcome.SURVIVED
            counts["survived" if survived else "killed"] += 1
            if survived:
                survivors.append(result.diff)
    return counts, survivors


def chosen_of(items, sample, seed):
    """The jobs of a sample, the same ones whenever they were numbered."""

    def place(item):
        (mutation,) = item.mutations
        return mutation.start_pos, mutation.operator_name, mutation.occurrence

    tried = sorted((i for i in items if is_tried(i.mutations[0].operator_name)), key=place)
    if sample is not None and sample < len(tried):
        tried = random.Random(seed).sample(tried, sample)
    return {item.job_id for item in tried}


@contextlib.contextmanager
def server(module, copy):
    """The address of a process that answers `ask`."""
    address, mutated = str(copy / "socket"), copy / f"keras_onlstm/{module}.py"
    command = [sys.executable, __file__, "--serve", address, TESTS[module][0], mutated]
    with subprocess.Popen(command) as process:
        while not os.path.exists(address) and process.poll() is None:
            time.sleep(0.1)
        yield address
        process.kill()
        os.unlink(address)


def main():
    if sys.argv[1:2] == ["--serve"]:
        return serve(*sys.argv[2:])
    if sys.argv[1:2] == ["--ask"]:
        return ask(sys.argv[2], sys.argv[3:])
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
            with server(module, copy) as address:
                counts, survivors = mutate(
                    module, options.sample, options.seed, address, copy, output
                )
            print(*survivors, sep="\n")
            print(json.dumps({"module": module, **counts}), flush=True)


if __name__ == "__main__":
    main()
