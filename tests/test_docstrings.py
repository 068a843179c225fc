"""Docstrings: what they have to say, and that their examples run."""

import ast
import doctest
import importlib
import inspect
import os
import re
import textwrap
from typing import NamedTuple

import pytest

from package import MODULES, module_name

PUBLIC_MODULES = [path for path in MODULES if "/_" not in "/" + path.replace("__init__.py", "")]


@pytest.mark.parametrize("path", PUBLIC_MODULES)
def test_public_names_are_documented(path):
    module = importlib.import_module(module_name(path))
    assert module.__doc__, f"{path} has no docstring"
    for_users = _names_for_users(importlib.import_module("keras_onlstm"))
    found = []
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        if value.__module__ != module.__name__:
            continue  # documented where it is defined
        if value in for_users:
            found += [f"{path}: {name}: {gap}" for gap in gaps(value)]
        elif not value.__doc__:
            found.append(f"{path}: {name}: no docstring")
    assert not found, "\n".join(found)


def _names_for_users(module):
    """The classes and functions that users reach from the root by public names."""
    found = set()
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.ismodule(value):
            found |= _names_for_users(value)
        elif callable(value):
            found.add(value)
    return found


def gaps(value):
    """What the docstring of a class or a function lacks: a list of messages.

    Sections are asked for where the source says that there is something to write in them. A record,
    a class of fields without methods to construct or call it, is shown by what returns it.
    """
    if not value.__doc__:
        return ["no docstring"]
    if inspect.isclass(value) and issubclass(value, BaseException):
        return []
    text = inspect.getdoc(value)
    tree = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
    if inspect.isclass(value):
        methods = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        construct = methods.get("__init__")
        is_record = construct is None and any(isinstance(node, ast.AnnAssign) for node in tree.body)
        parameters = _parameters(construct) if construct else []
        wanted = {
            "Args": bool(parameters),
            "Attributes": is_record,
            "Call arguments": "call" in methods,
            "Raises": construct is not None and _raises(construct),
        }
    else:
        is_record = False
        parameters = _parameters(tree)
        wanted = {
            "Args": bool(parameters),
            "Returns|Yields": _returns(tree),
            "Raises": _raises(tree),
        }
    missing = [
        f"no section '{section}:'"
        for section, needed in wanted.items()
        if needed and not re.search(rf"^(?:{section}):", text, re.MULTILINE)
    ]
    missing += [
        f"no word on '{name}'" for name in parameters if not re.search(rf"\b{name}\b", text)
    ]
    if not is_record and ">>> " not in text:
        missing.append("no example that runs (>>>)")
    return missing


def _parameters(function):
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [argument.arg for argument in named if argument.arg not in ("self", "cls")]


def _own_nodes(function):
    """The nodes of a function without those of the functions inside it."""
    waiting = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))


def _raises(function):
    return any(isinstance(node, ast.Raise) for node in _own_nodes(function))


def _returns(function):
    return any(
        isinstance(node, ast.Yield | ast.YieldFrom)
        or (isinstance(node, ast.Return) and node.value is not None)
        for node in _own_nodes(function)
    )


def _undocumented(x):
    return x


def _documented_in_part(x, y):
    """Returns `x`."""
    if y is None:
        raise ValueError
    return x


def _documented(x):
    """Returns `x`.

    Args:
        x: anything.

    Returns:
        `x`.

    Example:

    >>> _documented(1)
    1
    """
    return x


class _Record(NamedTuple):
    """A record."""

    x: int


@pytest.mark.keras_free
def test_gaps_in_docstrings_are_found():
    assert gaps(_undocumented) == ["no docstring"]
    assert gaps(_documented_in_part) == [
        "no section 'Args:'",
        "no section 'Returns|Yields:'",
        "no section 'Raises:'",
        "no word on 'y'",
        "no example that runs (>>>)",
    ]
    assert gaps(_documented) == []
    assert gaps(_Record) == ["no section 'Attributes:'"]


def _skip_where_tensorflow_is_needed(path):
    if path.startswith("exporting/") and os.environ["KERAS_BACKEND"] != "tensorflow":
        pytest.skip("exporting needs the backend tensorflow")


@pytest.mark.parametrize("path", MODULES)
def test_docstring_examples_run(path, tmp_path, monkeypatch):
    _skip_where_tensorflow_is_needed(path)
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(module_name(path))
    results = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert results.failed == 0, "the captured output has the examples that failed"


def test_there_are_docstring_examples():
    finder = doctest.DocTestFinder()
    modules = [importlib.import_module(module_name(path)) for path in MODULES]
    assert sum(len(test.examples) for module in modules for test in finder.find(module)) > 0
