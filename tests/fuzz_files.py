"""Damaged files of every kind that the package reads, given to what reads them.

A result may come out, or one line that names the file: a `ValueError` or `OSError`. Anything else
is a finding, a crash or two minutes without an answer too. A case follows from the seed, the kind
and its number. Each kind has a process of its own.

    python tests/fuzz_files.py --seed 1 --count 5000            # cases, shared among the kinds
    python tests/fuzz_files.py --seed 1 --kind mrg --case 17    # one of them again
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
LARGEST = 4 * 2**20  # bytes of a damaged file
PATIENCE = 120  # seconds for a case
ROOM = 3 * 2**30  # bytes of addresses that a process may take beyond those of its libraries


def run_case(kind, paths, seed, number):
    """Damages a file and reads it: `"read"`, `"refused"`, or a description of a finding."""
    draw = random.Random(f"{seed} {kind.name} {number}")
    path = draw.choice(paths)
    whole = path.read_bytes()
    path.write_bytes(kind.damage(draw, whole)[:LARGEST])
    try:
        kind.read(path)
    except (ValueError, OSError) as error:
        message = str(error)
        if "\n" in message:
            return f"more than a line: {message!r}"
        if not any(name in message for name in (str(path), *(f"{p}:" for p in path.parents))):
            return f"does not name {path.name}: {message}"
        return "refused"
    except BaseException as error:
        return "".join(traceback.format_exception(error))
    finally:
        path.write_bytes(whole)
    return "read"


def _start(name):
    """Prepares a process for the cases of a kind. It gets little more memory than it has."""
    global _kind, _paths, _directory
    sys.path.append(str(ROOT / "examples"))
    from helpers.file_kinds import KINDS

    warnings.simplefilter("ignore")
    _kind, _directory = KINDS[name], tempfile.TemporaryDirectory()
    _paths = _kind.make(Path(_directory.name))
    for path in _paths:  # whole files are read
        _kind.read(path)
    addresses = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (addresses + ROOM, -1))


def _run(seed, number):
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    return run_case(_kind, _paths, seed, number)


def outcomes(name, seed, numbers):
    """The outcome of each case of a kind, in a process of their own, until one crashes."""
    context, found = multiprocessing.get_context("spawn"), {}
    with concurrent.futures.ProcessPoolExecutor(1, context, _start, (name,)) as pool:
        for number in numbers:
            try:
                found[number] = pool.submit(_run, seed, number).result()
            except concurrent.futures.BrokenExecutor as error:
                found[number] = f"the process ended: {error}"
                break
    return found


def main():
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]
    from helpers.file_kinds import KINDS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000, help="of cases in all")
    parser.add_argument("--kind", action="append", choices=KINDS, help="default: all")
    parser.add_argument("--case", type=int, help="this case only")
    options = parser.parse_args()
    chosen, counts = options.kind or list(KINDS), collections.Counter()
    numbers = range(options.count // len(chosen)) if options.case is None else [options.case]
    for name in chosen:
        for number, outcome in outcomes(name, options.seed, numbers).items():
            is_finding = outcome not in ("read", "refused")
            counts["findings" if is_finding else outcome] += 1
            if is_finding:
                print(f"--seed {options.seed} --kind {name} --case {number}: {outcome}", flush=True)
    print(json.dumps(counts))
    sys.exit(bool(counts["findings"]))


if __name__ == "__main__":
    main()
