"""Measures size, loading time and parsing speed of the page that parses in the browser.

    make web && python benchmarks/web.py --chromium /usr/bin/chromium

Chromium runs on one processor core. The sentences are successive sequences of words of NLTK's
treebank sample. Writes web.md.
"""

import argparse
import os
import re
import sys
from pathlib import Path

import report

ROOT = Path(__file__).resolve().parents[1]
SENTENCE = "Investors who bought the shares last year lost a lot of money."
TYPE = """async (text) => {
  const field = document.getElementById("text");
  const results = document.getElementById("results");
  const shown = new Promise((done) => new MutationObserver((_, watcher) => {
    if (results.getAttribute("aria-busy") === "false") { watcher.disconnect(); done(); }
  }).observe(results, { childList: true, attributes: true }));
  field.value = text;
  const start = performance.now();
  field.dispatchEvent(new Event("input"));
  await shown;
  return performance.now() - start;
}"""


def sentences(count, words):
    """Makes `count` texts of `words` words."""
    from keras_onlstm.datasets import treebank

    tokens = [word for sentence in treebank.load() for word in sentence.tokens if word.isalpha()]
    return [" ".join(tokens[i * words : (i + 1) * words]) for i in range(count)]


def measure(page, options, texts):
    """Measures the first visit of the page and the time from typing to the tree."""
    sys.path.insert(0, str(ROOT / "web"))
    from playwright.sync_api import sync_playwright
    from serve import serving

    requests = []
    with sync_playwright() as started, serving(page) as address:
        browser = started.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        context = browser.new_context(service_workers="block")
        tab = context.new_page()
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(address)
        tab.wait_for_selector("#results svg")
        first = tab.evaluate("performance.now()")
        tab.wait_for_selector("#loading", state="hidden")
        last = tab.evaluate("performance.now()")
        tab.wait_for_selector("#results[aria-busy=false]")
        times = [tab.evaluate(TYPE, text) for text in texts]
        version = browser.version
        if options.picture:
            tab.set_viewport_size({"width": 900, "height": 600})
            tab.fill("#text", SENTENCE)
            tab.wait_for_timeout(500)
            tab.screenshot(path=options.picture, full_page=True)
        browser.close()
    times = times[len(times) // 4 :]  # without those before the browser has compiled the code
    low, middle, high = report.quartiles(times)
    return {
        "Chromium": version,
        "requests of the first load": str(len(requests)),
        "first tree after, s": f"{first / 1e3:.1f}",
        "all models after, s": f"{last / 1e3:.1f}",
        f"from {options.words} words to the tree, ms": f"{middle:.0f} ({low:.0f} to {high:.0f})",
    }


def file_sizes(page):
    """Sizes of groups of files in megabytes."""
    sizes = {"WebAssembly": 0, "models": 0, "the first model": 0, "other files": 0}
    for path in filter(Path.is_file, page.rglob("*")):
        model = re.match(r"(onlstm|prpn)-(\d+)", path.name)
        name = "models" if model else "WebAssembly" if "wasm" in path.name else "other files"
        sizes[name] += path.stat().st_size
        if model and model[0] == "onlstm-1":
            sizes["the first model"] += path.stat().st_size
    return {f"{name}, MB": f"{size / 1e6:.2f}" for name, size in sizes.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    # fmt: off
    add("--page", type=Path, default=ROOT / "runs" / "web", metavar="DIR",
        help="Folder of the page, as built by `make web`. (default: runs/web)")
    add("--chromium", default="/usr/bin/chromium", metavar="PATH",
        help="Chromium executable. (default: %(default)s)")
    add("--words", type=int, default=20, metavar="N", help="Words per sentence. (default: 20)")
    add("--count", type=int, default=80, metavar="N", help="Number of sentences. (default: 80)")
    add("--picture", metavar="PATH", help="Write a screenshot of the page to this .png file.")
    add("--output", type=Path, default=Path("runs/benchmarks"), metavar="DIR",
        help="Folder for web.md. (default: %(default)s)")
    # fmt: on
    options = parser.parse_args()
    if not (options.page / "index.html").is_file():
        parser.error(
            f"--page {options.page}: index.html is missing. Build the page with `make web`."
        )
    texts = sentences(options.count, options.words)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # the browser inherits it
    rows = {**file_sizes(options.page), **measure(options.page, options, texts)}
    lines = ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]
    options.output.mkdir(parents=True, exist_ok=True)
    report.replace(options.output / "web.md", "\n".join([*lines, ""]))
    print(*lines, sep="\n")


if __name__ == "__main__":
    main()
