"""The examples in docstrings run. ruff checks that public names have docstrings."""

import doctest
import importlib
import os

import pytest

from helpers.package import MODULES, module_name


@pytest.mark.parametrize("path", MODULES)
def test_docstring_examples_run(path, tmp_path, monkeypatch):
    if path.startswith("exporting/") and os.environ["KERAS_BACKEND"] != "tensorflow":
        pytest.skip("exporting needs the backend tensorflow")
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(module_name(path))
    results = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert results.failed == 0, "the captured output has the examples that failed"


def test_there_are_docstring_examples():
    finder = doctest.DocTestFinder()
    modules = [importlib.import_module(module_name(path)) for path in MODULES]
    assert sum(len(test.examples) for module in modules for test in finder.find(module)) > 500
