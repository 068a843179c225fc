"""What may import what: import-linter's contracts of pyproject.toml, and what they cannot say.

The other rules are read off the syntax trees, so that an import inside a function counts as much as
one at the top of a file. Every rule and every contract is shown to catch an offender.
"""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import PurePosixPath
from typing import NamedTuple

import pytest

from package import MODULES, PACKAGE, ROOT, module_name

BACKENDS = {"tensorflow": "tensorflow", "jax": "jax", "jaxlib": "jax", "torch": "torch"}
DEPENDENCIES = {"h5py", "keras", "nltk", "numpy"}
OPTIONAL = {  # import name: what pip installs it by
    "ai_edge_litert": "ai-edge-litert",
    "matplotlib": "matplotlib",
    "onnx": "onnx",
    "onnxruntime": "onnxruntime",
    "pyarrow": "pyarrow",
    "ray": "ray[data]",
    "safetensors": "safetensors",
    "spacy": "spacy",
    "svgling": "svgling",
    "tensorboard": "tensorboard",
    "tf2onnx": "tf2onnx",
}
OUTSIDE = {"benchmarks", "examples", "export", "tests", "web"}


class Import(NamedTuple):
    name: str  # dotted and absolute, with the imported name: keras_onlstm.parser.Parser
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
    if not _part(path):
        return  # the root names everything
    if not target or not any(
        (PACKAGE / target[0]).with_suffix(end).exists() for end in ("", ".py")
    ):
        yield "import from the module that defines a name, not from the root"


def _outside(path, imported, top, source):
    part, stem = _part(path), PurePosixPath(path).stem
    if top in OUTSIDE:
        yield "the package does not import what is built on it"
    elif top == "keras":
        if imported.name.split(".")[:2] == ["keras", "src"] and path != "utils/keras_private.py":
            yield "only utils/keras_private.py imports from keras.src"
    elif top in BACKENDS:
        if BACKENDS[top] not in stem.split("_") and part != "training":
            yield "a backend is imported by the files that have its name alone"
        if not imported.lazy:
            yield "a backend is imported when it is used, inside a function"
    elif top in OPTIONAL:
        if not imported.lazy:
            yield "an optional dependency is imported when it is used, inside a function"
        if OPTIONAL[top] not in _named(source):
            yield f"not_installed does not name the library, {OPTIONAL[top]}"
    elif top == "nltk":
        if not imported.lazy:
            yield "importing NLTK takes half a second: inside a function"
    elif top not in DEPENDENCIES | sys.stdlib_module_names:
        yield "setup.cfg does not declare this dependency"


def _named(source):
    """The libraries that errors, or the module's docstring, tell the user to install."""
    tree = ast.parse(source)
    documented = re.findall(r"`pip install ([^` ]+)`", ast.get_docstring(tree) or "")
    called = [
        argument.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "not_installed"
        for argument in node.args
        if isinstance(argument, ast.Constant)
    ]
    return {*documented, *called}


OFFENDERS = [
    ("onlstm/layer.py", "import keras_onlstm", "defines a name"),
    ("onlstm/layer.py", "from keras_onlstm import ONLSTMCell", "defines a name"),
    ("onlstm/layer.py", "def f():\n    import tensorflow as tf", "have its name"),
    ("onlstm/recurrence/fused.py", "def f():\n    from jax import lax", "have its name"),
    ("onlstm/recurrence/jax.py", "def f():\n    import torch", "have its name"),
    ("onlstm/recurrence/fused_torch.py", "import torch", "inside a function"),
    ("training/loop.py", "if True:\n    import jax", "inside a function"),
    ("onlstm/cell.py", "def f():\n    importlib.import_module('torch.nn')", "have its name"),
    ("onlstm/layer.py", "from keras.src.layers.rnn.rnn import RNN", "keras.src"),
    ("onlstm/layer.py", "from keras import src", "keras.src"),
    ("onlstm/layer.py", "import keras\nRNN = keras.src.layers.RNN", "keras.src"),
    ("onlstm/layer.py", "from tests.oracle import onlstm", "built on it"),
    ("models/pair_classifier.py", "import examples.logic_inference", "built on it"),
    ("parsing/drawing.py", "'`pip install svgling`'\nimport svgling", "inside a function"),
    ("parsing/drawing.py", "def draw():\n    import matplotlib.pyplot", "not name the library"),
    (
        "parsing/drawing.py",
        "def draw():\n    try:\n        import svgling\n    except ImportError as error:\n"
        "        raise not_installed('SVG', 'matplotlib', error=error) from error",
        "not name the library, svgling",
    ),
    ("parsing/trees.py", "from nltk import Tree", "half a second"),
    ("datasets/treebank.py", "import pandas", "does not declare"),
]

INNOCENT = [
    (
        "__init__.py",
        "from keras_onlstm.onlstm.layer import ONLSTM\nfrom keras_onlstm import convert",
    ),
    ("onlstm/layer.py", "import keras\nfrom keras_onlstm.onlstm.cell import ONLSTMCell"),
    ("onlstm/layer.py", "from .step import step\nfrom keras_onlstm.onlstm import recurrence"),
    ("onlstm/recurrence/__init__.py", "from .reference import scan"),
    ("onlstm/recurrence/fused_tensorflow.py", "def f():\n    import tensorflow as tf"),
    ("training/loop.py", "def f():\n    from torch.func import vmap"),
    (
        "utils/keras_private.py",
        "from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell",
    ),
    ("parsing/trees.py", "import re\nimport numpy as np\nfrom . import scores"),
    (
        "parsing/drawing.py",
        "def draw():\n    try:\n        import svgling\n    except ImportError as error:\n"
        "        raise not_installed('SVG', 'svgling', error=error) from error",
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
def test_no_file_breaks_a_rule():
    assert MODULES, "the package has no files"
    found = [
        offence
        for path in MODULES
        for offence in offences((PACKAGE / path).read_text(encoding="utf-8"), path)
    ]
    assert not found, "\n".join(found)


@pytest.mark.keras_free
def test_no_message_names_an_extra_of_the_package():
    """It would install TensorFlow too, where people run another backend."""
    folders = ("keras_onlstm", "examples", "export", "benchmarks", "web", "docs")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.*")]
    sources = [path for path in paths if path.suffix in (".py", ".md", ".mjs", ".html")]
    assert len(sources) > 250
    named = [path for path in sources if re.search(r"keras-onlstm\[", path.read_text("utf-8"))]
    assert not named


def lint(directory):
    """The exit status of import-linter in a directory, and what it says in one line."""
    code = "import sys; from importlinter.cli import lint_imports as lint; "
    code += "sys.exit(lint(no_cache=True, no_logo=True))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=directory, capture_output=True, text=True, check=False
    )
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.mark.keras_free
def test_contracts_hold():
    status, said = lint(ROOT)
    assert status == 0, said
    assert " 0 broken" in said


# A file, what is added to it, and what the contracts say then. PRPN and TreeLSTM are to come.
OF_CONTRACTS = [
    (
        "onlstm/cumax.py",
        "from keras_onlstm.onlstm.step import step",
        "onlstm.cumax -> {0}.onlstm.step",
    ),
    ("onlstm/step.py", "from .cell import ONLSTMCell", "onlstm.step -> {0}.onlstm.cell"),
    (
        "onlstm/recurrence/fused.py",
        "from ..cell import ONLSTMCell",
        "onlstm.recurrence.fused -> {0}.onlstm.cell",
    ),
    (
        "onlstm/recurrence/single.py",
        "from keras_onlstm.onlstm import cell",
        "onlstm.recurrence.single -> {0}.onlstm.cell",
    ),
    (
        "onlstm/cell.py",
        "def f():\n    import keras_onlstm.onlstm.recurrence.reference",
        "onlstm.cell -> {0}.onlstm.recurrence.reference",
    ),
    ("onlstm/layer.py", "from keras_onlstm import models", "onlstm.layer -> {0}.models"),
    (
        "models/pair_classifier.py",
        "from keras_onlstm.exporting import to_onnx",
        "models.pair_classifier -> {0}.exporting",
    ),
    (
        "exporting/checks.py",
        "from keras_onlstm.training import Trainer",
        "exporting.checks -> {0}.training",
    ),
    (
        "parsing/votes.py",
        "from keras_onlstm.onlstm.cumax import cumax",
        "parsing.votes -> {0}.onlstm.cumax",
    ),
    ("parsing/trees.py", "from keras import ops", "parsing.trees -> keras"),
    ("text/corpus.py", "def f():\n    import keras", "text.corpus -> keras"),
    ("runtime/graph.py", "import torch", "runtime.graph -> torch"),
    (
        "prpn/step.py",
        "from keras_onlstm.onlstm.cumax import cumax",
        "prpn.step -> {0}.onlstm.cumax",
    ),
    ("tree_lstm/step.py", "from keras_onlstm.prpn import step", "tree_lstm.step -> {0}.prpn.step"),
    ("onlstm/layer.py", "from keras_onlstm import tree_lstm", "onlstm.layer -> {0}.tree_lstm"),
    ("novelty.py", "from keras_onlstm.utils import files", "novelty"),
    ("onlstm/novelty.py", "from keras_onlstm.utils import files", "onlstm.novelty"),
    (
        "utils/reading.py",
        "def f():\n    from keras_onlstm.utils import console, files",
        "reading -> .console",
    ),
]


@pytest.mark.keras_free
def test_every_contract_catches_offenders(tmp_path):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    package = tmp_path / "keras_onlstm"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "trained"))
    for path, source, _ in OF_CONTRACTS:
        (package / path).parent.mkdir(exist_ok=True)
        (package / path).parent.joinpath("__init__.py").touch()
        with open(package / path, "a", encoding="utf-8") as file:
            file.write(f"\n{source}\n")
    status, said = lint(tmp_path)
    assert status == 1
    missed = [c for c in OF_CONTRACTS if c[2].format("keras_onlstm") not in said]
    assert not missed, f"{missed} are not in: {said}"


@pytest.mark.backend("jax", "torch")
def test_runs_where_tensorflow_is_not_installed():
    names = [module_name(path) for path in MODULES if _part(path) != "exporting"]
    script = (
        "import importlib, sys\n"
        "sys.modules['tensorflow'] = None  # importing it raises ImportError\n"
        "for name in sys.argv[1:]: importlib.import_module(name)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *names], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
