"""Measures the page that parses in the browser: its size, how it loads, how fast it parses.

    make web && python benchmarks/web.py --chromium /usr/bin/chromium

Chromium runs on one processor core. The sentences are successive sequences of --words words from
NLTK's treebank sample. Writes web.md.
"""

import argparse
import os
import re
import sys
from pathlib import Path

import report

ROOT = Path(__file__).resolve().parents[1]
PICTURED = "Investors who bought the shares last year lost a lot of money."
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
    """`count` texts of `words` words."""
    from keras_onlstm.datasets import treebank

    found = [word for sentence in treebank.load() for word in sentence.tokens if word.isalpha()]
    return [" ".join(found[i * words : (i + 1) * words]) for i in range(count)]


def measure(page, options, texts):
    """Measurements by name, from the first load of the page on."""
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
            tab.fill("#text", PICTURED)
            tab.wait_for_timeout(500)
            tab.screenshot(path=options.picture, full_page=True)
        browser.close()
    times = times[len(times) // 4 :]  # after that the browser has compiled the hot code
    low, middle, high = report.quartiles(times)
    return {
        "Chromium": version,
        "requests of the first load": str(len(requests)),
        "first tree after, s": f"{first / 1e3:.1f}",
        "all models after, s": f"{last / 1e3:.1f}",
        f"from {options.words} words to the tree, ms": f"{middle:.0f} ({low:.0f} to {high:.0f})",
    }


def weight(page):
    """Sizes in megabytes by name."""
    sizes = {"WebAssembly": 0, "models": 0, "the first model": 0, "all else": 0}
    for path in filter(Path.is_file, page.rglob("*")):
        model = re.match(r"(onlstm|prpn)-(\d+)", path.name)
        name = "models" if model else "WebAssembly" if "wasm" in path.name else "all else"
        sizes[name] += path.stat().st_size
        if model and model[0] == "onlstm-1":
            sizes["the first model"] += path.stat().st_size
    return {f"{name}, MB": f"{size / 1e6:.2f}" for name, size in sizes.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--page", type=Path, default=ROOT / "runs" / "web", help="default: runs/web")
    add("--chromium", default="/usr/bin/chromium", metavar="PATH", help="default: %(default)s")
    add("--words", type=int, default=20, help="of a sentence; default: 20")
    add("--count", type=int, default=80, help="of sentences; default: 80")
    add("--picture", metavar="PATH", help="a .png file for a picture of the page")
    add("--output", type=Path, default=Path("runs/benchmarks"))
    options = parser.parse_args()
    if not (options.page / "index.html").is_file():
        parser.error(f"{options.page}: holds no page. Build it with make web.")
    texts = sentences(options.count, options.words)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # the browser inherits it
    rows = {**weight(options.page), **measure(options.page, options, texts)}
    lines = ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]
    options.output.mkdir(parents=True, exist_ok=True)
    report.replace(options.output / "web.md", "\n".join([*lines, ""]))
    print(*lines, sep="\n")


if __name__ == "__main__":
    main()
