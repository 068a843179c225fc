"""The tables of what was measured are those of its files, and each result says what measured it."""

import json
import re
import shutil
from xml.etree import ElementTree

import pytest

import commands
from package import ROOT

DOCS = ROOT / "docs"
FILES = sorted((DOCS / "measured").glob("*.json"))
SCRIPT = re.compile(r"\bpython ([\w/]+\.py)\b")

pytestmark = pytest.mark.keras_free


@pytest.fixture(scope="module")
def module():
    with commands.imported(DOCS, "write_tables") as (module,):
        yield module


@pytest.fixture
def run(module, monkeypatch, capsys):
    return commands.runner(DOCS / "write_tables.py", module, monkeypatch, capsys)


@pytest.fixture
def docs(module, tmp_path):
    """A copy of the pages and of what was measured."""
    shutil.copytree(DOCS / "measured", tmp_path / "measured")
    for name in module.PAGES:
        shutil.copy(DOCS / name, tmp_path)
    return tmp_path


def pages(module):
    return {name: (DOCS / name).read_text(encoding="utf-8") for name in module.PAGES}


def result(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_tables_are_those_of_the_files(run):
    assert run("--check") == (0, "", "")


def test_every_table_with_figures_is_written(module):
    for name, text in pages(module).items():
        others = module.TABLE.sub("", text)
        by_hand = [line for line in others.splitlines() if re.match(r"\|.*\d.*\|$", line)]
        assert by_hand == [], name


def test_every_file_is_in_a_page(module):
    shown = [
        (match["name"], int(match["number"]))
        for text in pages(module).values()
        for match in module.TABLE.finditer(text)
    ]
    stored = [(path.stem, n) for path in FILES for n in range(1, 1 + len(result(path)["tables"]))]
    assert len(stored) >= 40
    assert sorted(shown) == sorted(stored)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_measured_it_stands_in_the_documentation(path, module):
    """Lines of shell that are there word for word, of scripts that have the options."""
    text = "".join(page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("*.md")))
    for line in result(path).get("command", []):
        assert line.strip() in text, line
        for script in SCRIPT.findall(line):
            known = sources(ROOT / script)
            for option in (word for word in line.split() if word.startswith("--")):
                assert f'"{option}"' in known, (script, option)


def sources(script):
    """A script with what it may take its arguments from."""
    beside = sorted(script.parent.glob("*.py"))
    shared = sorted((ROOT / "keras_onlstm" / "training").glob("*.py"))
    assert script in beside
    return "".join(one.read_text(encoding="utf-8") for one in [*beside, *shared])


def test_figures_say_what_draws_them(module):
    for name, text in pages(module).items():
        for figure, after in re.findall(r"^(!\[.*)\n\n(.*)$", text, re.MULTILINE):
            assert re.match(r"\*Drawn by `python [\w/]+\.py\b", after), (name, figure)


def test_the_front_page_has_no_result_of_its_own(module):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    results = readme.partition("## Results\n")[2].partition("\n## ")[0]
    shown = re.findall(r"\d+\.\d+", results)
    known = set(re.findall(r"\d+\.\d+", pages(module)["results.md"]))
    assert len(shown) >= 12
    assert [figure for figure in shown if figure not in known] == []


def test_cells(module):
    form = "{:.1f} ± {:.2f}"
    assert module.cell([79.3, 1], form) == "79.3 ± 1.00"
    assert module.cell(7803460, "{:,d}") == "7,803,460"
    assert module.cell({"form": "**{:+.1f}**", "values": [3]}, form) == "**+3.0**"
    assert module.cell("no", form) == "no"
    found = {
        "columns": [{"name": "", "form": ""}, {"name": "F1", "form": "{:.1f}"}],
        "rows": [["a", 7.25], ["b", ""]],
    }
    assert module.table(found) == "| | F1 |\n|---|---|\n| a | 7.2 |\n| b | |\n"


def test_a_changed_number_is_seen_and_written(run, docs):
    path = docs / "measured" / "logical_paper.json"
    text = path.read_text(encoding="utf-8")
    assert "77.5" in text
    path.write_text(text.replace("77.5", "78.5"), encoding="utf-8")
    before = (docs / "results.md").read_text(encoding="utf-8")
    status, out, errors = run("--check", "--docs", docs)
    assert status != 0 and out == f"{docs / 'results.md'}: table logical_paper 1\n"
    assert "1 tables are not those of docs/measured: python docs/write_tables.py" in errors
    assert (docs / "results.md").read_text(encoding="utf-8") == before
    assert run("--docs", docs)[0] == 0
    after = (docs / "results.md").read_text(encoding="utf-8")
    assert after.splitlines() == before.replace("| 78.7 | 77.5 |", "| 78.7 | 78.5 |").splitlines()
    assert run("--check", "--docs", docs) == (0, "", "")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no such file"),
        ('{"command": ["a"], "tables": [', "makes no tables"),
        ("[]", "makes no tables"),
        ('{"tables": []}', "neither a command nor a note"),
        ('{"note": "n"}', "'tables' is missing"),
        ('{"note": "n", "tables": []}', "has 0 tables, and"),
        ('{"note": "n", "tables": [{"columns": [], "rows": [[1]]}]}', "makes no tables"),
        (
            '{"note": "n", "tables": [{"columns": [{"name": "", "form": "{:.1f}"}],'
            ' "rows": [[[]]]}]}',
            "makes no tables",
        ),
    ],
)
def test_damaged_files(run, docs, content, said):
    path = docs / "measured" / "logical_paper.json"
    path.unlink()
    if content is not None:
        path.write_text(content, encoding="utf-8")
    commands.refused("write_tables.py", run("--docs", docs), str(path), said)


def test_the_picture_of_perplexities_is_that_of_the_files():
    with commands.imported(DOCS, "draw_perplexity") as (module,):
        found = module.curves()
    description = ElementTree.parse(module.PICTURE).find(".//{*}description")
    assert json.loads(description.text) == found
    assert found["small: LSTM, seed 1"][0] == 184.6 and len(found) >= 7
