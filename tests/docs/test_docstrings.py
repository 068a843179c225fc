"""The examples in docstrings run, and the names in docs/api.md have one."""

import doctest
import enum
import importlib
import inspect
import os
import re
import warnings

import keras
import pytest

from helpers.package import MODULES, ROOT, module_name

CODE = re.compile(r"^ *```(?:python|\{code-cell\})[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
# They need spaCy, or a run and a treebank.
WITHOUT_EXAMPLES = re.compile(r"keras_onlstm\.(spacy_component|evaluation\.unsupervised_parsing)\.")
# Results that functions return, and classes that are used like the Keras class that they extend.
SIMPLE = (tuple, enum.Enum, keras.optimizers.Optimizer, keras.callbacks.Callback)
EXCEPTIONS = {
    "keras_onlstm.datasets.syntactic_evaluation.read_lists",
    "keras_onlstm.prpn.ParsingNetwork",
    "keras_onlstm.prpn.PredictNetwork",
    "keras_onlstm.prpn.ReadingNetwork",
    "keras_onlstm.text.corpus.mapped",
}


@pytest.mark.parametrize("path", MODULES)
def test_docstring_examples_run(path, tmp_path, monkeypatch):
    if path.startswith("exporting/") and os.environ["KERAS_BACKEND"] != "tensorflow":
        pytest.skip("exporting needs the backend tensorflow")
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(module_name(path))
    results = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert results.failed == 0, "see the captured output for the examples that failed"


def public_objects():
    """The functions and classes that docs/api.md shows: {name: object}."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    objects = {}
    for directive, target in re.findall(r"^\.\. auto(\w+):: (\S+)$", text, re.MULTILINE):
        if directive == "module":
            module = importlib.import_module(target)
            names = getattr(module, "__all__", None) or public_names(module)
        else:
            module_path, _, name = target.rpartition(".")
            module, names = importlib.import_module(module_path), [name]
        for name in names:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isroutine(value):
                objects[f"{module.__name__}.{name}"] = value
    return objects


def public_names(module):
    """The public names that a module without `__all__` defines."""
    members = inspect.getmembers(module, lambda v: getattr(v, "__module__", "") == module.__name__)
    return [name for name, _ in members if not name.startswith("_")]


def test_public_names_have_examples():
    """An example is in the docstring, in another docstring, or in the documentation."""
    finder = doctest.DocTestFinder()
    modules = [importlib.import_module(module_name(path)) for path in MODULES]
    sources = [
        example.source
        for module in modules
        for test in finder.find(module)
        for example in test.examples
    ]
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        sources += CODE.findall(path.read_text(encoding="utf-8"))
    words = set(re.findall(r"\w+", "\n".join(sources)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # earlier names
        objects = public_objects()
    assert len(objects) > 100
    missing = {
        name
        for name, value in objects.items()
        if not WITHOUT_EXAMPLES.match(name)
        and not (inspect.isclass(value) and issubclass(value, SIMPLE))
        and name.rpartition(".")[2] not in words
        and not any(test.examples for test in finder.find(value, name))
    }
    assert not missing - EXCEPTIONS
