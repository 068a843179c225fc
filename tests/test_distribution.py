"""What a package index shows: the README with absolute links, derived from one URL."""

import re
import runpy

import pytest

from package import ROOT

pytestmark = pytest.mark.keras_free


@pytest.fixture(scope="module")
def setup():
    return runpy.run_path(str(ROOT / "setup.py"), run_name="setup")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("![a](docs/a.svg)", "![a]({URL}/raw/main/docs/a.svg)"),
        ("[More, on `x`](docs/x.md#y)", "[More, on `x`]({URL}/blob/main/docs/x.md#y)"),
        ("[a](https://a.b/c) [d](#e)", "[a](https://a.b/c) [d](#e)"),
    ],
)
def test_links_become_absolute(setup, text, shown):
    assert setup["absolute"](text) == shown.replace("{URL}", setup["URL"])


def test_the_readme_has_only_links_that_an_index_can_follow(setup):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    relative = re.findall(r"\]\((?!https://|#)([^)#]+)", text)
    assert "docs/images/steps.svg" in relative
    assert not [target for target in relative if not (ROOT / target).exists()]
    shown = setup["absolute"](text)
    assert not re.findall(r"\]\((?!https://|#)[^)]*", shown)
    assert f"]({setup['PICTURES']}/docs/images/steps.svg)" in shown
