"""The figures in the documentation are those of docs/measured."""

import json
import re
import shutil
from xml.etree import ElementTree

import pytest

from helpers import commands
from helpers.package import ROOT

DOCS = ROOT / "docs"

pytestmark = pytest.mark.keras_free


@pytest.fixture(scope="module")
def module():
    with commands.imported(DOCS, "write_tables") as (module,):
        yield module


@pytest.fixture
def run(module, monkeypatch, capsys):
    return commands.runner(DOCS / "write_tables.py", module, monkeypatch, capsys)


def test_tables_are_those_of_the_files(run):
    assert run("--check") == (0, "", "")


def test_no_table_of_figures_is_written_by_hand(module):
    for name in module.PAGES:
        others = module.TABLE.sub("", (DOCS / name).read_text(encoding="utf-8"))
        assert re.findall(r"^\|.*\d.*\|$", others, re.MULTILINE) == [], name


def test_results_of_the_readme_are_in_the_documentation():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    results = readme.partition("## Results\n")[2].partition("\n## ")[0]
    shown = set(re.findall(r"\d+\.\d+", results))
    assert shown and shown <= set(re.findall(r"\d+\.\d+", (DOCS / "results.md").read_text("utf-8")))


def test_a_changed_number_is_reported_and_written(run, module, tmp_path):
    shutil.copytree(DOCS / "measured", tmp_path / "measured")
    for name in module.PAGES:
        shutil.copy(DOCS / name, tmp_path)
    path, page = tmp_path / "measured" / "logical_paper.json", tmp_path / "results.md"
    before = page.read_text(encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace("77.5", "78.5"), encoding="utf-8")
    status, out, _ = run("--check", "--docs", tmp_path)
    assert status != 0 and out == f"{page}: table logical_paper 1\n"
    assert page.read_text(encoding="utf-8") == before
    assert run("--docs", tmp_path)[0] == 0
    assert page.read_text(encoding="utf-8") == before.replace("| 78.7 | 77.5 |", "| 78.7 | 78.5 |")


def test_the_picture_of_perplexities_is_that_of_the_files():
    with commands.imported(DOCS, "draw_perplexity") as (module,):
        found = module.curves()
    description = ElementTree.parse(module.PICTURE).find(".//{*}description")
    assert json.loads(description.text) == found
    assert found["medium: LSTM, seed 1"][0] == 184.6 and len(found) >= 7
