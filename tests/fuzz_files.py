"""Reads corrupted files of every format of the package.

A file may be read successfully, or rejected with a `ValueError` or `OSError` of one line that
names the file. Everything else is a bug, including crashes and two minutes without a result. The
seed, the format and the number of a case determine it. Each format has a separate process.

    python tests/fuzz_files.py --seed 1 --count 5000            # cases, split among the formats
    python tests/fuzz_files.py --seed 1 --kind mrg --case 17    # repeats one case
"""

import argparse
import collections
import concurrent.futures
import faulthandler
import json
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAX_SIZE = 4 * 2**20  # bytes of a corrupted file
TIMEOUT = 120  # seconds per case
MEMORY = 3 * 2**30  # bytes of address space, in addition to the libraries


def run_case(kind, paths, seed, number):
    """Corrupts a file and reads it: `"read"`, `"rejected"`, or a description of a bug."""
    draw = random.Random(f"{seed} {kind.name} {number}")
    path = draw.choice(paths)
    content = path.read_bytes()
    path.write_bytes(kind.corrupt(draw, content)[:MAX_SIZE])
    try:
        kind.read(path)
    except (ValueError, OSError) as error:
        message = str(error)
        if "\n" in message:
            return f"more than one line: {message!r}"
        if not any(name in message for name in (str(path), *(f"{p}:" for p in path.parents))):
            return f"does not name {path.name}: {message}"
        return "rejected"
    except BaseException as error:
        return "".join(traceback.format_exception(error))
    finally:
        path.write_bytes(content)
    return "read"


def _start(name):
    """Prepares a process for the cases of a format and limits its memory."""
    global _kind, _paths, _directory
    sys.path.append(str(ROOT / "examples"))
    from helpers.file_kinds import KINDS

    warnings.simplefilter("ignore")
    _kind, _directory = KINDS[name], tempfile.TemporaryDirectory()
    _paths = _kind.make(Path(_directory.name))
    for path in _paths:  # intact files can be read
        _kind.read(path)
    addresses = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (addresses + MEMORY, -1))


def _run(seed, number):
    faulthandler.dump_traceback_later(TIMEOUT, exit=True)
    return run_case(_kind, _paths, seed, number)


def outcomes(name, seed, numbers):
    """Runs cases of a format in a process until one crashes: {number: outcome}."""
    context, results = multiprocessing.get_context("spawn"), {}
    with concurrent.futures.ProcessPoolExecutor(1, context, _start, (name,)) as pool:
        for number in numbers:
            try:
                results[number] = pool.submit(_run, seed, number).result()
            except concurrent.futures.BrokenExecutor as error:
                results[number] = f"the process ended: {error}"
                break
    return results


def main():
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]
    from helpers.file_kinds import KINDS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="Seed. (default: 0)")
    parser.add_argument("--count", type=int, default=1000, help="Cases in total. (default: 1000)")
    parser.add_argument("--kind", action="append", choices=KINDS, help="Format. Default: all.")
    parser.add_argument("--case", type=int, help="Number of a single case to run.")
    options = parser.parse_args()
    names, counts = options.kind or list(KINDS), collections.Counter()
    numbers = range(options.count // len(names)) if options.case is None else [options.case]
    for name in names:
        for number, outcome in outcomes(name, options.seed, numbers).items():
            is_bug = outcome not in ("read", "rejected")
            counts["bugs" if is_bug else outcome] += 1
            if is_bug:
                print(f"--seed {options.seed} --kind {name} --case {number}: {outcome}", flush=True)
    print(json.dumps(counts))
    sys.exit(bool(counts["bugs"]))


if __name__ == "__main__":
    main()
