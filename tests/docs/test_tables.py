"""The figures in the documentation equal those of docs/measured."""

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


def test_tables_match_their_files(run):
    assert run("--check") == (0, "", "")


def test_tables_of_figures_are_not_written_by_hand(module):
    for path in module.find_pages(DOCS):
        others = module.TABLE.sub("", path.read_text(encoding="utf-8"))
        assert re.findall(r"^\|.*\d.*\|$", others, re.MULTILINE) == [], path.name


def test_every_measured_file_is_shown(module):
    pages = [path.read_text(encoding="utf-8") for path in module.find_pages(DOCS)]
    shown = {match["name"] for page in pages for match in module.TABLE.finditer(page)}
    shown.add("language_curves")  # drawn by draw_perplexity.py
    assert {path.stem for path in (DOCS / "measured").glob("*.json")} == shown


def test_results_of_the_readme_are_in_the_documentation():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    results = readme.partition("## Results\n")[2].partition("\n## ")[0]
    shown = set(re.findall(r"\d+\.\d+", results))
    assert shown and shown <= set(re.findall(r"\d+\.\d+", (DOCS / "results.md").read_text("utf-8")))


def test_changed_number_is_reported_and_written(run, module, tmp_path):
    shutil.copytree(DOCS / "measured", tmp_path / "measured")
    for path in module.find_pages(DOCS):
        copy = tmp_path / path.relative_to(DOCS)
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(path, copy)
    path, page = tmp_path / "measured" / "logical_inference.json", tmp_path / "results.md"
    before = page.read_text(encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace("77.5", "78.5"), encoding="utf-8")
    status, out, _ = run("--check", "--docs", tmp_path)
    assert status != 0 and out == f"{page}: table logical_inference 1\n"
    assert page.read_text(encoding="utf-8") == before
    assert run("--docs", tmp_path)[0] == 0
    assert page.read_text(encoding="utf-8") == before.replace("| 78.7 | 77.5 |", "| 78.7 | 78.5 |")


def test_picture_of_perplexities_is_up_to_date():
    with commands.imported(DOCS, "draw_perplexity") as (module,):
        curves = module.load_curves()
    description = ElementTree.parse(module.PICTURE).find(".//{*}description")
    assert json.loads(description.text) == curves
    assert curves["medium: LSTM, seed 1"][0] == 184.6 and len(curves) >= 7
