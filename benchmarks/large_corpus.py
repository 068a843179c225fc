"""Measures how long training on a corpus of 100 million words takes to begin, and the memory.

    python benchmarks/large_corpus.py --output /tmp/large          # 0.6 GB of text, 0.4 GB of ids

Draws sentences of words with frequencies by Zipf's law, writes them as a corpus, and starts
`examples/language_modeling.py` on it for some batches. Prefixes every line of its output with the
seconds since the start, and ends with the peak memory of the process.
"""

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

SCRIPT = Path(__file__).resolve().parents[1] / "examples" / "language_modeling.py"
BLOCK = 1_000_000  # words drawn at once
SENTENCE = 20  # words on average


def parse_arguments():
    parser = argparse.ArgumentParser(description="Training on a large corpus: time and memory.")
    add = parser.add_argument
    add("--words", type=int, default=100_000_000, help="of training text (default: 100 million)")
    add("--types", type=int, default=1_000_000, help="different words (default: a million)")
    add("--max-words", type=int, default=33_000, help="that are kept (default: 33,000)")
    add("--steps", type=int, default=20, help="batches (default: 20)")
    add("--preset", default="medium", help="of the model (default: medium)")
    add("--output", type=Path, required=True, metavar="DIR", help="for the corpus and the run")
    return parser.parse_args()


def write_text(path, words, types, seed):
    """Writes `words` words; the n-th most frequent one has a share proportional to 1 / n."""
    generator = np.random.default_rng(seed)
    shares = np.cumsum(1 / np.arange(1, types + 1))
    shares /= shares[-1]
    names = np.array([f"w{rank:x}" for rank in range(types)], dtype=object)
    with open(path, "w") as file:
        for start in range(0, words, BLOCK):
            count = min(BLOCK, words - start)
            drawn = names[np.searchsorted(shares, generator.random(count))]
            ends = np.flatnonzero(generator.random(count - 1) < 1 / SENTENCE) + 1
            file.writelines(" ".join(part) + "\n" for part in np.split(drawn, ends))


def main(options):
    corpus, run = options.output / "corpus", options.output / "run"
    corpus.mkdir(parents=True)
    begin = time.monotonic()
    for seed, part in enumerate(("train", "valid", "test")):
        words = options.words if part == "train" else 200_000
        write_text(corpus / f"{part}.txt", words, options.types, seed)
    size = sum(path.stat().st_size for path in corpus.iterdir())
    print(
        f"{options.words:,} words, {size / 1e9:.2f} GB, drawn in {time.monotonic() - begin:.0f} s"
    )
    begin = time.monotonic()
    arguments = {
        "--data": corpus,
        "--output": run,
        "--preset": options.preset,
        "--max-words": options.max_words,
        "--steps": options.steps,
    }
    command = [str(part) for pair in arguments.items() for part in pair]
    with subprocess.Popen(
        [sys.executable, str(SCRIPT), *command], stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stdout:
            print(f"{time.monotonic() - begin:6.0f} s  {line}", end="", flush=True)
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6  # from kB, on Linux
    seconds = time.monotonic() - begin
    print(f"{seconds:6.0f} s  exit status {process.returncode}, at most {most:.2f} GB")
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(parse_arguments()))
