"""Damaged files of every kind that the package reads, given to what reads them.

A result may come out, or one line that names the file: a `ValueError` or `OSError`. Anything else,
10 seconds of work or 500 MB of memory is a finding. A case is read in a process that may crash, and
follows from the seed, the kind and its number.

    python tests/fuzz_files.py --seed 1 --count 5000            # cases, shared among the kinds
    python tests/fuzz_files.py --seed 1 --kind mrg --case 17    # one of them again
"""

import argparse
import json
import os
import queue
import random
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS, BYTES = 10, 500e6
LARGEST = 4 * 2**20  # bytes of a damaged file: what takes long has to be small
PATIENCE = 120  # seconds without a word from a process, which is then hanging
ROOM = 3 * 2**30  # bytes of addresses that a process may take beyond those of its libraries


def kinds():
    """Names of the kinds, those that need no Keras first."""
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "examples"), str(ROOT)]
    import file_kinds

    return file_kinds.KINDS


class Finding(Exception):
    """Something came out that may not."""


def run_case(kind, target, seed, number):
    """Damages the files of a kind as the number of the case says, and reads them.

    Args:
        kind: of `file_kinds`.
        target: what its `make` made.
        seed: integer.
        number: integer.

    Returns:
        `"read"` or `"refused"`.

    Raises:
        Finding: if anything else came of it.
    """
    draw = random.Random(f"{seed} {kind.name} {number}")
    path = draw.choice(target.paths)
    return run_content(kind, target, path, kind.damage(draw, path.read_bytes())[:LARGEST])


def run_content(kind, target, path, content):
    """Reads one of the files of a target with another content; as `run_case` otherwise."""
    whole = path.read_bytes()
    path.write_bytes(content)
    Path("/proc/self/clear_refs").write_text("5")  # the largest so far is forgotten
    before, started = memory("VmRSS"), time.process_time()
    try:
        outcome = read(kind, target, path)
    finally:
        path.write_bytes(whole)
    grown, seconds = memory("VmHWM") - before, time.process_time() - started
    if grown > BYTES or seconds > SECONDS:
        raise Finding(f"{grown / 1e6:.0f} MB, {seconds:.1f} s")
    return outcome


def read(kind, target, path):
    try:
        kind.read(target, path)
    except (ValueError, OSError) as error:
        message = str(error)
        if "\n" in message:
            raise Finding(f"more than a line: {message!r}") from error
        if str(path) not in message and str(target.directory) + ":" not in message:
            raise Finding(f"does not name {path.name}: {message}") from error
        if any(text in message for text in ("MemoryError", "bad_alloc", "Unable to allocate")):
            raise Finding(f"the memory is at its end: {message}") from error
        return "refused"
    except BaseException as error:
        raise Finding("".join(traceback.format_exception(error))) from error
    return "read"


def memory(name):
    """Of this process in bytes, by its name in Linux: VmRSS, the present; VmHWM, the largest."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(rf"{name}:\s+(\d+)", status)[1])


def limit_memory():
    """From here on this process can have `ROOM` more addresses."""
    addresses = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (addresses + ROOM, -1))


def work(name, seed, numbers):
    """The cases of a kind in this process, each begun and ended with a line of JSON."""
    warnings.simplefilter("ignore")
    kind = kinds()[name]
    # What the libraries under test print is not what the parent process reads.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with tempfile.TemporaryDirectory() as directory:
        target = kind.make(Path(directory))
        for path in target.paths:  # what is whole is read, or nothing means anything
            kind.read(target, path)
        limit_memory()
        for number in numbers:
            print(json.dumps({"begun": number}), file=answers, flush=True)
            try:
                outcome = run_case(kind, target, seed, number)
            except Finding as finding:
                outcome = f"finding: {finding}"
            print(json.dumps({"number": number, "outcome": outcome}), file=answers, flush=True)


def watch(name, seed, numbers):
    """Outcomes of the cases of a kind, in processes that are started anew where they crash."""
    left = list(numbers)
    while left:
        command = [sys.executable, __file__, "--work", name, "--seed", str(seed), "--cases"]
        begun = None
        with (
            tempfile.TemporaryFile("w+") as errors,
            subprocess.Popen(
                [*command, *map(str, left)], stdout=subprocess.PIPE, stderr=errors, text=True
            ) as process,
        ):
            for answer in answers(process):
                begun = answer.get("begun")
                if begun is None:
                    left.remove(answer["number"])
                    yield answer["number"], answer["outcome"]
            errors.seek(0)
            said = errors.read()[-2000:]
        if begun is not None:
            left.remove(begun)
            yield begun, f"finding: the process ended with {process.returncode}: {said}"
        elif process.returncode:
            raise RuntimeError(f"{name}: {said}")


def answers(process):
    """What a process says, line by line, until it ends or has been silent for too long."""
    lines = queue.Queue()

    def read():
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    try:
        while (line := lines.get(timeout=PATIENCE)) is not None:
            yield json.loads(line)
    except queue.Empty:
        process.kill()
    process.wait()


def fuzz(seed, count, chosen):
    """Counts of what came out, and the findings, each printed with what reproduces it."""
    counts = {}
    for name in chosen:
        counts[name] = dict.fromkeys(("read", "refused", "found"), 0)
        for number, outcome in watch(name, seed, range(count // len(chosen))):
            found = outcome.startswith("finding")
            counts[name]["found" if found else outcome] += 1
            if found:
                print(f"--seed {seed} --kind {name} --case {number}: {outcome}", flush=True)
        print(f"{name}: {counts[name]}", file=sys.stderr, flush=True)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000, help="of cases in all")
    parser.add_argument("--kind", action="append", help="default: all")
    parser.add_argument("--case", type=int, help="of one kind, this case alone")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--cases", type=int, nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options.work, options.seed, options.cases)
    if options.case is not None:
        (name,) = options.kind
        found = dict(watch(name, options.seed, [options.case]))
        print(found[options.case])
        return sys.exit(found[options.case].startswith("finding"))
    counts = fuzz(options.seed, options.count, options.kind or list(kinds()))
    total = {key: sum(one[key] for one in counts.values()) for key in ("read", "refused", "found")}
    print(json.dumps({**total, "kinds": counts}))
    return sys.exit(bool(total["found"]))


if __name__ == "__main__":
    main()
