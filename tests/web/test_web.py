"""Parts of the page that do not need a browser: JavaScript modules, test cases, colours."""

import itertools
import json
import os
import random
import re
import shutil
import subprocess

import pytest

from helpers import commands
from helpers.commands import ROOT
from helpers.raw_texts import raw_texts
from keras_onlstm.text.tokens import split

WEB = ROOT / "web"
SCRIPTS = [*sorted(WEB.rglob("*.mjs")), *sorted(WEB.glob("*.js"))]
SCRIPTS.append(ROOT / "export" / "javascript" / "parse.mjs")

pytestmark = pytest.mark.keras_free


@pytest.fixture(scope="module")
def node():
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if int(re.match(r"v(\d+)", version)[1]) < 20:
        pytest.skip(f"Node 20 or later is needed, got {version.strip()}")
    return node


@pytest.fixture(scope="module")
def scripts():
    names = "serve", "write_cases"
    with commands.imported(WEB, *names) as modules:
        yield dict(zip(names, modules, strict=True))


@pytest.fixture
def run(scripts, monkeypatch, capsys):
    """Runs a script by name: (exit status, stdout, stderr)."""

    def run(name, *arguments):
        return commands.runner(WEB / f"{name}.py", scripts[name], monkeypatch, capsys)(*arguments)

    return run


def test_javascript_has_no_syntax_errors(node):
    assert len(SCRIPTS) > 15
    for path in SCRIPTS:
        result = subprocess.run([node, "--check", path], capture_output=True, text=True)
        assert (result.returncode, result.stderr) == (0, ""), path


def test_javascript_tests_pass(node):
    result = subprocess.run(
        [node, "--test", *sorted((WEB / "tests").glob("*.test.mjs"))],
        capture_output=True,
        text=True,
        check=False,
        cwd=WEB,
    )
    assert result.returncode == 0, result.stdout
    assert int(re.search(r"^# pass (\d+)", result.stdout, re.MULTILINE)[1]) >= 20


def test_cases_are_up_to_date(run, tmp_path):
    status, _, errors = run("write_cases", "--output", tmp_path)
    assert (status, errors) == (0, "")
    for path in ("tests/cases.json", "parsing/english.mjs"):
        assert (tmp_path / path).read_text("utf-8") == (WEB / path).read_text("utf-8"), path


def text_pieces():
    """Words, punctuation and white space for random texts."""
    texts = [
        case["text"]
        for case in json.loads((WEB / "tests" / "cases.json").read_text("utf-8"))["texts"]
    ]
    pieces = {
        piece
        for text in texts[:-1]
        for piece in (*text.split(), *re.findall(r"\w+|\s|[^\w\s]", text))
    }
    return sorted(
        pieces
        | {"``", "''", "--", "...", "\n\n", "\x85", "\u0301", "\u200d", "\ufeff", "U.S.", "p.m."}
    )


def test_javascript_splits_texts_like_python(node):
    """FUZZ_COUNT sets the number of random texts."""
    draw, pieces, texts = random.Random(1), text_pieces(), raw_texts()
    for _ in range(int(os.environ.get("FUZZ_COUNT", 1500))):
        parts = draw.choices(pieces, k=draw.randint(1, 14))
        texts.append("".join(part + draw.choice(["", " ", " ", "  "]) for part in parts))
    expected = [
        [[[token.text, token.is_word] for token in sentence] for sentence in split(text)]
        for text in texts
    ]
    program = (
        f'import {{ split }} from "{(WEB / "parsing" / "tokens.mjs").as_uri()}";'
        'import { text } from "node:stream/consumers";'
        "const sentences = JSON.parse(await text(process.stdin)).map((text) =>"
        " split(text).map((tokens) => tokens.map((token) => [token.text, token.isWord])));"
        "console.log(JSON.stringify(sentences));"
    )
    result = subprocess.run(
        [node, "--input-type=module", "--eval", program],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    for text, actual, wanted in zip(texts, json.loads(result.stdout), expected, strict=True):
        assert actual == wanted, text


def test_serve_rejects_missing_page_and_used_port(run, scripts, tmp_path):
    result = run("serve", tmp_path)
    commands.refused("serve.py", result, f"{tmp_path}: index.html is missing", "make web")
    (tmp_path / "index.html").write_text("")
    with scripts["serve"].server(tmp_path) as taken:
        port = taken.server_port
        result = run("serve", tmp_path, "--port", port)
    commands.refused("serve.py", result, f"--port {port}: cannot be used", "--port 0")


def themes():
    """The colours of the light theme, the dark theme, and the dark theme of the system."""
    text = (WEB / "style.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root[^{]*\{([^}]*)\}", text)
    return [dict(re.findall(r"(--[\w-]+): (#\w{6});", block)) for block in blocks]


def luminance(colour):
    """Relative luminance of WCAG 2, https://www.w3.org/TR/WCAG22/#dfn-relative-luminance."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def contrast(colour, other):
    darker, lighter = sorted((luminance(colour), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_colours_have_enough_contrast():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    light, dark, system_dark = themes()
    assert dark == system_dark and light.keys() == dark.keys()
    for theme in (light, dark):
        texts = itertools.product(("--text", "--quiet", "--accent"), ("--back", "--card"))
        for text, back in [*texts, ("--on-accent", "--accent"), ("--other", "--back")]:
            assert contrast(theme[text], theme[back]) >= 4.5, (text, back)
        layers = [name for name in theme if name.startswith("--layer")]
        assert len(layers) == 4
        for name in [*layers, "--branch", "--other"]:
            assert contrast(theme[name], theme["--card"]) >= 3, name
