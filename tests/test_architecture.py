"""The rules that hold for the package as a whole: what may import what, and what is documented.

The import rules are read off the syntax trees, so that an import inside a function counts as much
as one at the top of a file. Every rule is first shown to catch an offender.
"""

import ast
import doctest
import importlib
import inspect
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "keras_onlstm"
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))
PAGES += ["README.md"] if (ROOT / "README.md").exists() else []

# A module or subpackage imports from the lines above its own alone. A new one is entered here.
LAYERS = (
    {"_types"},
    {
        "_keras_private",
        "_registration",
        "arguments",
        "files",
        "numerics",
        "provenance",
        "reading",
        "version",
    },
    {"console", "cumax", "datasets", "locks", "npz", "regularization"},
    {"sentences", "step"},
    {"cell", "recurrence", "runtime"},
    {"layer"},
    {"minimal_pairs", "models", "parsing"},
    {"compact", "convert", "keras_file", "training"},
    {"exporting", "stored"},
    {"parser"},
    {"command_line"},
)
PLACE = {name: place for place, names in enumerate(LAYERS) for name in names}
KERAS_FREE = {
    *("_types", "arguments", "console", "datasets", "files", "locks", "minimal_pairs", "npz"),
    *("parsing", "reading", "runtime", "sentences"),
}
BACKENDS = {"tensorflow": "tensorflow", "jax": "jax", "jaxlib": "jax", "torch": "torch"}
DEPENDENCIES = {"h5py", "keras", "nltk", "numpy"}
OPTIONAL = {  # import name: extras that install it
    "ai_edge_litert": {"tflite"},
    "matplotlib": {"viz"},
    "onnx": {"onnx", "onnx-gpu"},
    "onnxruntime": {"onnx", "onnx-gpu"},
    "safetensors": {"safetensors"},
    "svgling": {"viz"},
    "tensorboard": {"tensorboard"},
    "tf2onnx": {"onnx", "onnx-gpu"},
}
OUTSIDE = {"benchmarks", "examples", "export", "tests"}


class Import(NamedTuple):
    name: (
        str  # dotted and absolute, with the imported name: keras.ops, keras_onlstm.cell.ONLSTMCell
    )
    line: int
    lazy: bool  # inside a function


class _Imports(ast.NodeVisitor):
    def __init__(self, path):
        self.package = ("keras_onlstm", *PurePosixPath(path).parent.parts)
        self.found = []
        self.depth = 0

    def add(self, name, node):
        self.found.append(Import(name, node.lineno, self.depth > 0))

    def visit_function(self, node):
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_function

    def visit_Import(self, node):
        for alias in node.names:
            self.add(alias.name, node)

    def visit_ImportFrom(self, node):
        parts = [node.module] if node.module else []
        if node.level:
            parts = [*self.package[: len(self.package) - node.level + 1], *parts]
        for alias in node.names:
            self.add(".".join([*parts, alias.name]), node)

    def visit_Attribute(self, node):
        if isinstance(node.value, ast.Name) and (node.value.id, node.attr) == ("keras", "src"):
            self.add("keras.src", node)
        self.generic_visit(node)

    def visit_Call(self, node):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func
        called = called.id if isinstance(called, ast.Name) else called
        argument = node.args[0] if node.args else None
        if called in ("__import__", "import_module") and isinstance(argument, ast.Constant):
            self.add(argument.value, node)
        self.generic_visit(node)


def offences(source, path):
    """The rules that a file of the package breaks, `path` being relative to it: messages."""
    visitor = _Imports(path)
    visitor.visit(ast.parse(source))
    found = []
    for imported in visitor.found:
        top, *rest = imported.name.split(".")
        if top == "keras_onlstm":
            broken = _inside(path, rest)
        else:
            broken = _outside(path, imported, top, source)
        found += [f"{path}:{imported.line}: {imported.name}: {message}" for message in broken]
    return found


def _part(path):
    """The top-level module or subpackage that a file belongs to; "" for the root's own file."""
    part = PurePosixPath(path).parts[0].removesuffix(".py")
    return "" if part == "__init__" else part


def _inside(path, target):
    importer = _part(path)
    if importer == "":
        return  # the root names everything
    if not target or target[0] not in PLACE:
        yield "import from the module that defines a name, not from the root"
    elif importer not in PLACE:
        yield f"{importer} has no place in LAYERS yet"
    elif target[0] != importer:
        if PLACE[target[0]] >= PLACE[importer]:
            yield f"{importer} may not import {target[0]}: imports go one way"
        if importer in KERAS_FREE and target[0] not in KERAS_FREE | {"version"}:
            yield f"{importer} does without Keras, and {target[0]} needs it"


def _outside(path, imported, top, source):
    part, stem = _part(path), PurePosixPath(path).stem
    if top in OUTSIDE:
        yield "the package does not import what is built on it"
    elif top == "keras":
        if part in KERAS_FREE:
            yield f"{part} does without Keras"
        if imported.name.split(".")[:2] == ["keras", "src"] and path != "_keras_private.py":
            yield "only _keras_private.py imports from keras.src"
    elif top in BACKENDS:
        named = part in ("recurrence", "exporting") and BACKENDS[top] in stem.split("_")
        if not named and part != "training":
            yield "a backend is imported by its own files of recurrence/ and exporting/ alone"
        if not imported.lazy:
            yield "a backend is imported when it is used, inside a function"
    elif top in OPTIONAL:
        if not imported.lazy:
            yield "an optional dependency is imported when it is used, inside a function"
        if not any(f"keras-onlstm[{extra}]" in source for extra in OPTIONAL[top]):
            yield f"no error names the extra to install, keras-onlstm{sorted(OPTIONAL[top])}"
    elif top == "nltk":
        if not imported.lazy:
            yield "importing NLTK takes half a second: inside a function"
    elif top not in DEPENDENCIES | sys.stdlib_module_names:
        yield "setup.cfg does not declare this dependency"


OFFENDERS = [
    ("cumax.py", "from keras_onlstm.step import step", "one way"),
    ("step.py", "from .cell import ONLSTMCell", "one way"),
    ("recurrence/fused.py", "from ..cell import ONLSTMCell", "one way"),
    ("recurrence/fused.py", "from keras_onlstm import cell", "one way"),
    ("cell.py", "def f():\n    import keras_onlstm.recurrence.reference", "one way"),
    ("layer.py", "from keras_onlstm import models", "one way"),
    ("models/pair_classifier.py", "from keras_onlstm.exporting import to_onnx", "one way"),
    ("models/language_model.py", "from keras_onlstm.parsing import build_tree", "one way"),
    ("layer.py", "import keras_onlstm", "defines a name"),
    ("layer.py", "from keras_onlstm import ONLSTMCell", "defines a name"),
    ("novelty.py", "from keras_onlstm import cell", "no place in LAYERS"),
    ("layer.py", "def f():\n    import tensorflow as tf", "its own files"),
    ("recurrence/fused.py", "def f():\n    from jax import lax", "its own files"),
    ("recurrence/jax.py", "def f():\n    import torch", "its own files"),
    ("recurrence/fused_torch.py", "import torch", "inside a function"),
    ("training/loop.py", "if True:\n    import jax", "inside a function"),
    ("cell.py", "def f():\n    importlib.import_module('torch.nn')", "its own files"),
    ("parsing/trees.py", "from keras import ops", "without Keras"),
    ("datasets/penn_treebank.py", "def f():\n    import keras", "without Keras"),
    ("parsing/trees.py", "from keras_onlstm.cumax import cumax", "needs it"),
    ("layer.py", "from keras.src.layers.rnn.rnn import RNN", "keras.src"),
    ("layer.py", "from keras import src", "keras.src"),
    ("layer.py", "import keras\nRNN = keras.src.layers.RNN", "keras.src"),
    ("layer.py", "from tests.oracle import onlstm", "built on it"),
    ("models/pair_classifier.py", "import examples.logic_inference", "built on it"),
    ("parsing/drawing.py", "import svgling  # keras-onlstm[viz]", "inside a function"),
    ("parsing/drawing.py", "def draw():\n    import matplotlib.pyplot", "names the extra"),
    ("parsing/trees.py", "from nltk import Tree", "half a second"),
    ("datasets/treebank.py", "import pandas", "does not declare"),
]

INNOCENT = [
    ("__init__.py", "from keras_onlstm.layer import ONLSTM\nfrom keras_onlstm import convert"),
    ("layer.py", "import keras\nfrom keras_onlstm.cell import ONLSTMCell\nfrom .step import step"),
    ("recurrence/__init__.py", "from .reference import scan"),
    ("recurrence/fused_tensorflow.py", "def f():\n    import tensorflow as tf"),
    ("training/loop.py", "def f():\n    from torch.func import vmap"),
    ("_keras_private.py", "from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell"),
    ("parsing/trees.py", "import re\nimport numpy as np\nfrom . import scores"),
    (
        "parsing/drawing.py",
        "def draw():\n    try:\n        import svgling\n    except ImportError as error:\n"
        "        raise ImportError('pip install keras-onlstm[viz]') from error",
    ),
]


@pytest.mark.keras_free
@pytest.mark.parametrize(("path", "source", "message"), OFFENDERS)
def test_every_rule_catches_an_offender(path, source, message):
    found = offences(source, path)
    assert found and all(message in offence for offence in found), found


@pytest.mark.keras_free
@pytest.mark.parametrize(("path", "source"), INNOCENT)
def test_no_rule_accuses_the_innocent(path, source):
    assert offences(source, path) == []


@pytest.mark.keras_free
def test_imports_go_one_way():
    assert MODULES, "the package has no files"
    found = [
        offence
        for path in MODULES
        for offence in offences((PACKAGE / path).read_text(encoding="utf-8"), path)
    ]
    assert not found, "\n".join(found)


@pytest.mark.keras_free
def test_every_part_has_its_place():
    assert {_part(path) for path in MODULES} - {""} <= PLACE.keys()


@pytest.mark.backend("jax", "torch")
def test_runs_where_tensorflow_is_not_installed():
    names = [_module_name(path) for path in MODULES if _part(path) != "exporting"]
    script = (
        "import importlib, sys\n"
        "sys.modules['tensorflow'] = None  # importing it raises ImportError\n"
        "for name in sys.argv[1:]: importlib.import_module(name)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *names], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def _module_name(path):
    parts = ["keras_onlstm", *PurePosixPath(path).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PUBLIC_MODULES = [path for path in MODULES if "/_" not in "/" + path.replace("__init__.py", "")]


@pytest.mark.parametrize("path", PUBLIC_MODULES)
def test_public_names_are_documented(path):
    module = importlib.import_module(_module_name(path))
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
    if _part(path) == "exporting" and os.environ["KERAS_BACKEND"] != "tensorflow":
        pytest.skip("exporting needs the backend tensorflow")


@pytest.mark.parametrize("path", MODULES)
def test_docstring_examples_run(path, tmp_path, monkeypatch):
    _skip_where_tensorflow_is_needed(path)
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(_module_name(path))
    results = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert results.failed == 0, "the captured output has the examples that failed"


def test_there_are_docstring_examples():
    finder = doctest.DocTestFinder()
    modules = [importlib.import_module(_module_name(path)) for path in MODULES]
    assert sum(len(test.examples) for module in modules for test in finder.find(module)) > 0


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
