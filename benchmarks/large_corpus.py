"""Measures start-up time and peak memory of training on a corpus of 100 million words.

    python benchmarks/large_corpus.py --output /tmp/large          # 0.6 GB of text, 0.4 GB of ids

Generates a corpus with word frequencies of Zipf's law and runs `examples/language_modeling.py` on
it for a few batches. Every line of its output is prefixed with the seconds since the start. The
last line reports the peak memory of the process.
"""

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

SCRIPT = Path(__file__).resolve().parents[1] / "examples" / "language_modeling.py"
BLOCK = 1_000_000  # words that are drawn at once
SENTENCE_LENGTH = 20  # mean, in words


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    # fmt: off
    add("--words", type=int, default=100_000_000, metavar="N",
        help="Words of the training text. (default: 100 million)")
    add("--types", type=int, default=1_000_000, metavar="N",
        help="Distinct words. (default: 1 million)")
    add("--max-words", type=int, default=33_000, metavar="N",
        help="Size of the vocabulary. (default: 33,000)")
    add("--steps", type=int, default=20, metavar="N", help="Batches to train on. (default: 20)")
    add("--preset", default="medium", help="Preset of the model. (default: medium)")
    add("--output", type=Path, required=True, metavar="DIR", help="Folder for corpus and run.")
    # fmt: on
    return parser.parse_args()


def write_text(path, words, types, seed):
    """Writes random words; the frequency of the n-th most frequent one is proportional to 1 / n."""
    generator = np.random.default_rng(seed)
    cumulative = np.cumsum(1 / np.arange(1, types + 1))
    cumulative /= cumulative[-1]
    names = np.array([f"w{rank:x}" for rank in range(types)], dtype=object)
    with open(path, "w") as file:
        for start in range(0, words, BLOCK):
            count = min(BLOCK, words - start)
            drawn = names[np.searchsorted(cumulative, generator.random(count))]
            ends = np.flatnonzero(generator.random(count - 1) < 1 / SENTENCE_LENGTH) + 1
            file.writelines(" ".join(part) + "\n" for part in np.split(drawn, ends))


def main(options):
    corpus, run = options.output / "corpus", options.output / "run"
    corpus.mkdir(parents=True)
    start = time.monotonic()
    for seed, part in enumerate(("train", "valid", "test")):
        words = options.words if part == "train" else 200_000
        write_text(corpus / f"{part}.txt", words, options.types, seed)
    size = sum(path.stat().st_size for path in corpus.iterdir())
    seconds = time.monotonic() - start
    print(f"{options.words:,} words, {size / 1e9:.2f} GB, generated in {seconds:.0f} s")
    start = time.monotonic()
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
            print(f"{time.monotonic() - start:6.0f} s  {line}", end="", flush=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6  # from kB, on Linux
    seconds = time.monotonic() - start
    print(f"{seconds:6.0f} s  exit status {process.returncode}, peak memory {peak:.2f} GB")
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(parse_arguments()))
