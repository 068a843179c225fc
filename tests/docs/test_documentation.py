"""Links in docs/ lead to files, and the code in the README and in docs/ runs."""

import doctest
import re
import textwrap

import pytest

from helpers.package import ROOT

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
# Notebooks, whose {code-cell} blocks run when the documentation is built.
NOTEBOOKS = [page for page in PAGES if "```{code-cell}" in (ROOT / page).read_text("utf-8")]
# A comment `<!-- no-test: reason -->` in the previous line excludes a block.
BLOCK = re.compile(
    r"(?P<skipped>^ *<!-- no-test: \S[^\n]* -->\n)?^ *```python\n(?P<code>.*?)^ *```", re.M | re.S
)


@pytest.mark.keras_free
@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!\w+:)([\w./-]+)[)#]", text)
    folder = (ROOT / page).parent
    assert not [target for target in targets if not (folder / target).exists()]


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize("page", [*PAGES, "README.md"])
def test_code_runs(page, tmp_path, monkeypatch):
    """The blocks of a page run in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert text.count("```") % 2 == 0, "a code block does not end"
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for match in BLOCK.finditer(text):
        if match["skipped"]:
            continue
        line, code = text.count("\n", 0, match.start("code")), textwrap.dedent(match["code"])
        if code.startswith(">>> "):
            test = doctest.DocTestParser().get_doctest(code, names, page, page, line)
            assert doctest.DocTestRunner().run(test, clear_globs=False).failed == 0
            names.update(test.globs)
        else:
            exec(compile("\n" * line + code, page, "exec"), names)


@pytest.mark.keras_free
@pytest.mark.parametrize("page", NOTEBOOKS)
def test_notebook_cells_are_valid(page):
    """`make docs` runs the cells; this checks their syntax, without lines for IPython."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert text.count("```") % 2 == 0, "a code block does not end"
    cells = re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert cells
    for cell in cells:
        code = re.sub(r"^:.*\n|^---\n.*?^---\n", "", cell, flags=re.MULTILINE | re.DOTALL)
        compile(re.sub(r"^( *)[!%].*$", r"\1pass", code, flags=re.MULTILINE), page, "exec")
