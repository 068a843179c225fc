"""The code in the README and in docs/ runs, the blocks of a page in order."""

import doctest
import re
import textwrap

import pytest

from package import ROOT

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))
PAGES += ["README.md"] if (ROOT / "README.md").exists() else []

OPT_OUT = re.compile(r"<!-- no-test: \S.* -->")


def python_blocks(text):
    """The code blocks of a page that are marked `python`: pairs of first line's number and code.

    A comment `<!-- no-test: reason -->` in the line before leaves a block out.
    """
    blocks, inside, before = [], None, ""
    for number, line in enumerate(text.splitlines(), start=1):
        fence = re.match(r"\s*```\s*([\w-]*)", line)
        if inside is not None:
            if fence:
                if inside[0]:
                    blocks.append((inside[1], textwrap.dedent("\n".join(inside[2])) + "\n"))
                inside = None
            else:
                inside[2].append(line)
        elif fence:
            wanted = fence[1] == "python" and not OPT_OUT.fullmatch(before.strip())
            inside = (wanted, number + 1, [])
        before = line
    assert inside is None, "a code block does not end"
    return blocks


@pytest.mark.keras_free
def test_python_blocks_are_found():
    page = """text
```python
a = 1
```
```bash
make test
```
<!-- no-test: trains for an hour -->
```python
b = 2
```
<!-- no-test: -->
```python
c = 3
```
- item
  ```python
  d = 4
  ```
"""
    assert python_blocks(page) == [(3, "a = 1\n"), (14, "c = 3\n"), (18, "d = 4\n")]
    with pytest.raises(AssertionError, match="does not end"):
        python_blocks("```python\na = 1\n")


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize("page", PAGES)
def test_code_in_the_documentation_runs(page, tmp_path, monkeypatch):
    blocks = python_blocks((ROOT / page).read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for line, code in blocks:
        if code.startswith(">>> "):
            test = doctest.DocTestParser().get_doctest(code, names, page, page, line - 1)
            assert doctest.DocTestRunner().run(test, clear_globs=False).failed == 0
            names.update(test.globs)
        else:
            exec(compile("\n" * (line - 1) + code, page, "exec"), names)
