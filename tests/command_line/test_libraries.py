"""Commands where libraries are missing: the choice of a backend, and what to install."""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from helpers.commands import EXAMPLES, without
from keras_onlstm.utils import libraries
from keras_onlstm.utils.libraries import BACKENDS, choose_backend, not_installed

pytestmark = pytest.mark.keras_free
COMMAND = ["-c", "from keras_onlstm.command_line import main; main()"]
CHOSEN = (
    "tensorflow is not installed, so Keras runs on {0}. KERAS_BACKEND={0} leaves this line out."
)


def run(environment, *command):
    """Exit status, standard output, and the lines on standard error."""
    command = [sys.executable, *map(str, command)]
    process = subprocess.run(command, capture_output=True, text=True, env=environment)
    return process.returncode, process.stdout, process.stderr.splitlines()


def needs(*backends):
    for backend in backends:
        if importlib.util.find_spec(backend) is None:
            pytest.skip(f"{backend} is not installed")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The path of a small language model."""
    from keras_onlstm.models import LanguageModel

    built = LanguageModel(4, 4, 8, 1, 4, vocabulary=["<eos>", "<unk>", "prices", "fell"])
    built(np.array([[1, 2]]))
    path = tmp_path_factory.mktemp("model") / "model.keras"
    built.save(path)
    return path


def commands(model, directory):
    """Ways to start Keras: in a command, in its processes, in an example."""
    text = directory / "text.txt"
    text.write_text("prices fell\n" * 4)
    files = ["--file", text, "--output", directory / "out", "--workers", "2", "--rows", "2"]
    example = EXAMPLES / "logic_inference.py"
    return {
        "parse": (*COMMAND, "parse", "--model", model, "prices fell"),
        "shards": (*COMMAND, "parse", "--model", model, *files),
        "example": (example, "--preset", "debug", "--output", directory / "o"),
    }


@pytest.mark.parametrize(("name", "backend"), [("parse", "jax"), ("example", "torch")])
def test_commands_run_on_the_installed_backend(name, backend, model, tmp_path):
    needs(backend)
    hidden = set(BACKENDS) - {backend}
    command = commands(model, tmp_path)[name]
    status, output, errors = run(without(tmp_path, *hidden), *command)
    program = "logic_inference.py" if name == "example" else "keras-onlstm"
    assert (status, errors) == (0, [f"{program}: {CHOSEN.format(backend)}"]), errors
    assert output


def test_worker_processes_run_on_the_installed_backend(model, tmp_path):
    needs("torch")
    command = commands(model, tmp_path)["shards"]
    status, output, errors = run(without(tmp_path, "tensorflow", "jax"), *command)
    assert status == 0 and "4 rows; 8 words" in output, errors


def test_commands_without_keras_print_nothing(tmp_path):
    for hidden in (["tensorflow"], ["keras", *BACKENDS]):
        result = run(without(tmp_path, *hidden), *COMMAND, "parse", "prices fell")
        assert result == (0, "(X prices fell)\n", [])


@pytest.mark.parametrize("name", ["parse", "shards", "example"])
def test_missing_keras(name, model, tmp_path):
    """Only Keras, and a backend if none is installed, is recommended, once."""
    command = commands(model, tmp_path)[name]
    for hidden, install in ((["keras"], "keras"), (["keras", *BACKENDS], "keras tensorflow")):
        status, _, errors = run(without(tmp_path, *hidden), *command)
        (line,) = errors
        assert status == 2 and line.endswith(f": pip install {install}")
        assert line.count("pip install") == 1 and ".onnx" not in line
        assert "(No module named 'keras')" in line


@pytest.mark.parametrize("name", ["parse", "example"])
def test_missing_backend(name, model, tmp_path):
    command = commands(model, tmp_path)[name]
    status, _, errors = run(without(tmp_path, *BACKENDS), *command)
    (line,) = errors
    assert status == 2 and "Keras runs on tensorflow, which cannot be imported" in line
    assert "Install it: pip install tensorflow. Or install jax or torch, and set" in line


def test_backend_of_the_user_is_kept(model, tmp_path):
    needs("jax", "torch")
    command = commands(model, tmp_path)["parse"]
    variables = without(tmp_path, "tensorflow", KERAS_BACKEND="tensorflow")
    status, _, errors = run(variables, *command)
    (line,) = errors
    assert status == 2 and "as KERAS_BACKEND is tensorflow. Set KERAS_BACKEND=jax or torch" in line


@pytest.mark.parametrize(
    ("installed", "variable", "settings", "expected"),
    [
        ("tensorflow jax torch", None, None, None),
        ("jax torch", None, None, "jax"),
        ("torch", "", None, "torch"),
        ("torch", None, "{", "torch"),
        ("torch", None, '{"backend": "tensorflow"}', "torch"),  # which Keras writes by itself
        ("jax torch", None, '{"backend": "torch"}', None),
        ("jax", None, '{"backend": "torch"}', "jax"),
        ("jax", "tensorflow", None, None),
        ("jax", "torch", '{"backend": "tensorflow"}', None),
        ("jax", None, '{"backend": "numpy"}', None),  # which cannot be chosen
        ("", None, None, None),
    ],
)
def test_choice_of_the_backend(
    installed, variable, settings, expected, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.setattr(libraries, "is_installed", lambda module: module in installed.split())
    monkeypatch.setenv("KERAS_BACKEND", "")
    if variable is None:
        monkeypatch.delenv("KERAS_BACKEND")
    else:
        monkeypatch.setenv("KERAS_BACKEND", variable)
    if settings is not None:
        (tmp_path / "keras.json").write_text(settings)
    choose_backend("greet")
    assert os.environ.get("KERAS_BACKEND") == (variable if expected is None else expected)
    assert capsys.readouterr() == ("", "")  # before Keras is imported


def test_configured_backend_is_that_of_keras(tmp_path):
    code = (
        "from keras_onlstm.utils.libraries import configured_backend\n"
        "found = configured_backend()\n"
        "import keras\n"
        "print(found, keras.backend.backend())\n"
    )
    needs("torch")
    (tmp_path / "keras.json").write_text(json.dumps({"backend": "torch"}))
    assert run(without(tmp_path), "-c", code) == (0, "torch torch\n", [])


def test_import_does_not_choose_a_backend(tmp_path):
    """Python code that imports the package chooses the backend, and gets an error if it fails."""
    code = (
        "import os\n"
        "import keras_onlstm, keras_onlstm.training, keras_onlstm.utils.console\n"
        "try: import keras\n"
        "except ImportError as error: print(str(error)[:24], 'KERAS_BACKEND' in os.environ)\n"
    )
    result = run(without(tmp_path, "tensorflow"), "-c", code)
    assert result == (0, "Keras runs on tensorflow False\n", [])


def test_empty_folder_is_not_a_library(tmp_path, monkeypatch):
    (tmp_path / "no_such_library").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert importlib.util.find_spec("no_such_library") is not None
    assert not libraries.is_installed("no_such_library")
    assert libraries.is_installed("json") and not libraries.is_installed("no_such_module")


def test_names_are_quoted_for_the_shell():
    error = not_installed("--ray", "ray[data]", error=ImportError("gone"))
    assert str(error) == "--ray needs ray[data] (gone): pip install 'ray[data]'"
