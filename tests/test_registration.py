"""The root package: names that are imported when asked for, and models that load regardless."""

import importlib
import re
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_onlstm
from helpers.commands import environment, without
from keras_onlstm import _registration
from keras_onlstm.models import LanguageModel, PairClassifier


def python(code, *arguments):
    """The output of a separate process, in which warnings are errors."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    directory = tmp_path_factory.mktemp("saved")
    language_model = LanguageModel(11, 8, 16, chunk_size=4)
    language_model(np.array([[1, 2, 3]]))
    language_model.save(directory / "language_model.keras")
    classifier = PairClassifier(11, 8, 16, chunk_size=4)
    classifier((np.array([[1, 2, 3]]), np.array([[1, 2]])))
    classifier.save(directory / "classifier.keras")
    return directory


TOGETHER = """
import threading
import keras_onlstm
names = ["onlstm.layer", "parser", "models.ensemble"]
names = ["keras", *(f"keras_onlstm.{name}" for name in names)]
threads = [threading.Thread(target=__import__, args=(name,)) for name in names]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
import keras
"""


@pytest.mark.backend("tensorflow")  # every order is a process that imports it
@pytest.mark.parametrize("imports", ["import keras_onlstm, keras", TOGETHER])
def test_models_load_in_any_import_order(imports, saved):
    code = (
        f"{imports}\nimport sys\nfrom pathlib import Path\n"
        "for path in Path(sys.argv[1]).iterdir():\n"
        "    print(type(keras.saving.load_model(path)).__name__)\n"
        "print(*(type(finder).__module__ for finder in sys.meta_path))\n"
    )
    names = python(code, saved)
    assert sorted(names[:2]) == ["LanguageModel", "PairClassifier"]
    assert "keras_onlstm._registration" not in names  # the import hook is removed


def test_files_say_which_package_to_import(saved, tmp_path, monkeypatch):
    """The configuration names the package, and so does Keras's error if it is not imported."""
    layer = keras_onlstm.ONLSTM(4, 2)
    keras.Sequential([keras.Input((None, 3)), layer]).save(tmp_path / "layer.keras")
    paths = [*saved.iterdir(), tmp_path / "layer.keras"]
    for path in paths:
        with zipfile.ZipFile(path) as archive:
            text = archive.read("config.json").decode()
        owned = re.findall(r'"module": "([\w.]+)", "class_name": "(\w+)"', text)
        owned = [pair for pair in owned if pair[1] in ("ONLSTM", "LanguageModel", "PairClassifier")]
        assert owned and all(module.startswith("keras_onlstm.") for module, _ in owned)
        assert all(f'"registered_name": "keras_onlstm>{name}"' in text for _, name in owned)
    for name in ("ONLSTM", "LanguageModel", "PairClassifier"):
        monkeypatch.delitem(keras.saving.get_custom_objects(), f"keras_onlstm>{name}")
    for path in paths:
        with pytest.raises(TypeError, match=r"Could not locate class .*'module': 'keras_onlstm\."):
            keras.saving.load_model(path)


@pytest.mark.keras_free
def test_import_without_keras():
    code = (
        "import sys\n"
        "sys.modules['keras'] = None  # importing it raises ImportError\n"
        "import keras_onlstm.runtime\n"
        "from keras_onlstm import Parser, datasets, parsing\n"
        "for name in ('ONLSTM', 'cumax', 'models'):\n"
        "    try: getattr(keras_onlstm, name)\n"
        "    except ImportError: print(name)\n"
    )
    assert python(code) == ["ONLSTM", "cumax", "models"]


@pytest.mark.keras_free
def test_failing_import_of_keras_raises_its_own_error(tmp_path):
    """Its error comes through, and a second import tries again."""
    (tmp_path / "keras").mkdir()
    (tmp_path / "keras" / "__init__.py").write_text("raise RuntimeError('broken')\n")
    code = (
        "import sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "import keras_onlstm\n"
        "for _ in range(2):\n"
        "    try: import keras\n"
        "    except RuntimeError as error: print(error)\n"
    )
    assert python(code, tmp_path) == ["broken", "broken"]


def test_names_of_the_package():
    assert set(dir(keras_onlstm)) >= set(keras_onlstm.__all__)
    for name in keras_onlstm.__all__:
        value = getattr(keras_onlstm, name)
        if isinstance(value, types.ModuleType):
            assert value.__name__ == f"keras_onlstm.{name}"
        elif name != "__version__":
            assert value.__name__ == name and value.__module__.startswith("keras_onlstm.")
    with pytest.raises(AttributeError, match="module 'keras_onlstm' has no attribute 'LSTM'"):
        keras_onlstm.LSTM  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'LSTM'"):
        from keras_onlstm import LSTM  # noqa: F401


@pytest.mark.parametrize("package", ["training", "exporting"])
def test_names_imported_on_first_use(package):
    module = importlib.import_module(f"keras_onlstm.{package}")
    assert all(getattr(module, name) is not None for name in module.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'LSTM'"):
        module.LSTM  # noqa: B018


def test_cumax_is_the_function_in_any_import_order():
    import keras_onlstm.onlstm.step

    assert not isinstance(keras_onlstm.cumax, types.ModuleType)
    code = (
        "import keras_onlstm.onlstm.layer\nprint(keras_onlstm.cumax.__name__, keras_onlstm.cumax)"
    )
    assert python(code)[:2] == ["cumax", "<function"]


def test_every_class_with_a_decorator_is_registered():
    for module, names in _registration.CLASSES.items():
        for name in names:
            importlib.import_module(f"keras_onlstm.{module}")
            registered = keras.saving.get_registered_object(f"keras_onlstm>{name}")
            assert registered.__module__ == f"keras_onlstm.{module}"
    count = sum(
        path.read_text(encoding="utf-8").count("@keras.saving.register_keras_serializable")
        for path in Path(keras_onlstm.__file__).parent.rglob("*.py")
    )
    assert count == sum(map(len, _registration.CLASSES.values()))


@pytest.mark.parametrize(
    ("backend", "missing", "remedy"),
    [
        ("jax", ["jax", "torch"], "is jax. Set KERAS_BACKEND=tensorflow, or: pip install jax."),
        ("", ["tensorflow", "jax", "torch"], "is not set. Install it: pip install tensorflow."),
    ],
)
@pytest.mark.keras_free
def test_error_for_a_missing_backend(backend, missing, remedy, tmp_path):
    """One line names the variable and the library, and nothing of Keras's inside is shown."""
    code = "import keras_onlstm.models"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=without(tmp_path, *missing, KERAS_BACKEND=backend),
    )
    *above, said = done.stderr.splitlines()
    name = backend or "tensorflow"
    assert said.startswith(f"ImportError: Keras runs on {name}, which cannot be imported")
    assert f"as KERAS_BACKEND {remedy}" in said
    assert not any("keras/src" in line for line in above) and done.returncode == 1
