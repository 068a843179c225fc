"""Modules that importing the package needs. import-linter and ruff check import directions."""

import ast
import re
import subprocess
import sys

import pytest

from helpers.commands import EXAMPLES, environment
from helpers.package import MODULES, PACKAGE, ROOT, module_name

BACKENDS = {"tensorflow": "tensorflow", "jax": "jax", "jaxlib": "jax", "torch": "torch"}


def imported(path):
    """The libraries and the standard modules that a file of the package imports anywhere."""
    for node in ast.walk(ast.parse((PACKAGE / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]


@pytest.mark.keras_free
def test_backends_are_imported_only_by_files_named_after_them():
    for path in MODULES:
        backends = {BACKENDS[name] for name in imported(path) if name in BACKENDS}
        words = path.removesuffix(".py").rpartition("/")[2].split("_")
        assert backends <= set(words) or path.startswith(("distribution/", "training/")), path


@pytest.mark.keras_free
def test_every_library_is_declared():
    declared = set(re.findall(r"^    ([a-z0-9-]+)", (ROOT / "setup.cfg").read_text(), re.MULTILINE))
    names = {name for path in MODULES for name in imported(path)} - sys.stdlib_module_names
    distributions = {name.replace("_", "-") for name in names - {"keras_onlstm", "jaxlib"}}
    assert distributions <= declared and "keras" in distributions


def run(code, *arguments):
    """Runs code in a process of its own, which has to succeed: the lines it prints."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


HEAVY = "print(sorted({'keras', 'tensorflow', 'jax', 'torch', 'nltk'} & sys.modules.keys()))"


@pytest.mark.keras_free
def test_importing_the_package_does_not_import_keras():
    names = "keras_onlstm, keras_onlstm.training, keras_onlstm.exporting, keras_onlstm.runtime"
    assert run(f"import sys, {names}; {HEAVY}") == ["[]"]


@pytest.mark.keras_free
def test_help_of_the_examples_does_not_import_keras():
    code = (
        "import runpy, sys\n"
        "for path in sys.argv[1:]:\n"
        "    sys.argv, sys.path[0] = [path, '--help'], path.rpartition('/')[0]\n"
        "    try: runpy.run_path(path, run_name='__main__')\n"
        f"    except SystemExit: {HEAVY}"
    )
    scripts = sorted(map(str, EXAMPLES.glob("[!_]*.py")))
    assert len(scripts) > 5 and run(code, *scripts).count("[]") == len(scripts)


@pytest.mark.backend("jax", "torch")
def test_runs_where_tensorflow_is_not_installed():
    names = [module_name(path) for path in MODULES if not path.startswith("exporting/")]
    code = (
        "import importlib, sys\n"
        "sys.modules['tensorflow'] = None  # importing it raises ImportError\n"
        "for name in sys.argv[1:]: importlib.import_module(name)"
    )
    run(code, *names)
