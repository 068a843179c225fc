"""Damaged files, bred for the parts of a reader that they reach: `fuzz_files` guided by coverage.

    pip install atheris
    python tests/fuzz_coverage.py --kind compact --seconds 1800 --output runs/fuzz/compact

keeps in --output what reached something new, from where the next run goes on, and every file that
is a finding by the rules of `fuzz_files`, with what came of it beside it. The exit status says
whether there is one.
"""

import argparse
import contextlib
import hashlib
import io
import random
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import atheris

import fuzz_files

# A process for so many seconds: TensorFlow keeps some 40 kB of every variable that ever was.
ROUND = 300
SEEN = ["keras_onlstm", "zipfile", "pickletools", "json.decoder", "numpy.lib"]  # whose branches


def mutator(kind):
    """What libFuzzer changes a file by: as the kind is damaged, or byte by byte."""

    def mutate(data, most, seed):
        draw = random.Random(seed)
        changed = b""
        if draw.random() < 0.5:
            with contextlib.suppress(Exception):  # of a file that is too damaged to be understood
                changed = kind.damage(draw, data)[:most]
        return changed or atheris.Mutate(data, most)

    return mutate


def judge(kind, target, findings):
    """What libFuzzer calls with every file: keeps one of all findings that say the same."""
    known = set()

    def test(data):
        try:
            fuzz_files.run_content(kind, target, target.paths[0], data)
        except fuzz_files.Finding as finding:
            what = str(finding).splitlines()[-1][:80]
            if what not in known:
                known.add(what)
                path = findings / hashlib.sha256(data).hexdigest()[:12]
                path.write_bytes(data)
                path.with_suffix(".txt").write_text(f"{finding}\n")
                print(f"finding: {path}: {what}", file=sys.stderr, flush=True)

    return test


def work(name, seconds, seed, corpus, findings):
    """One process's share. Does not return."""
    warnings.simplefilter("ignore")
    kind = fuzz_files.kinds()[name]
    with tempfile.TemporaryDirectory() as directory:
        with (
            atheris.instrument_imports(include=SEEN),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            target = kind.make(Path(directory))
            for path in target.paths:
                kind.read(target, path)
        for path in target.paths:
            (corpus / path.name).write_bytes(path.read_bytes())
        fuzz_files.limit_memory()
        longest = min(fuzz_files.LARGEST, 4 * max(p.stat().st_size for p in target.paths))
        flags = {
            "max_total_time": seconds,
            "seed": seed,
            "max_len": longest,
            "timeout": fuzz_files.PATIENCE,
            "rss_limit_mb": 0,  # fuzz_files measures
            "print_final_stats": 1,
            "artifact_prefix": f"{findings}/",
        }
        arguments = [sys.argv[0], *(f"-{name}={value}" for name, value in flags.items())]
        atheris.Setup(
            [*arguments, str(corpus)],
            judge(kind, target, findings),
            custom_mutator=mutator(kind),
        )
        atheris.Fuzz()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", required=True, help="of file_kinds.py")
    parser.add_argument("--seconds", type=int, default=1800)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    corpus, findings = options.output / "corpus", options.output / "findings"
    for directory in (corpus, findings):
        directory.mkdir(parents=True, exist_ok=True)
    if options.work:
        return work(options.kind, options.seconds, options.seed, corpus, findings)
    for place, begun in enumerate(range(0, options.seconds, ROUND)):
        command = [sys.executable, __file__, "--work", "--kind", options.kind]
        command += ["--seconds", str(min(ROUND, options.seconds - begun))]
        command += ["--seed", str(options.seed + place), "--output", str(options.output)]
        subprocess.run(command)
    return sys.exit(any(findings.iterdir()))


if __name__ == "__main__":
    main()
