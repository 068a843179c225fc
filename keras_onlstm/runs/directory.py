"""The directory of a run: lock, `config.json`, results. Does not import Keras."""

import contextlib
import json
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_onlstm.utils.files import (
    LOCK,
    check_unlocked,
    is_left_over,
    locked,
    read_json,
    write_json,
)
from keras_onlstm.utils.libraries import versions
from keras_onlstm.utils.validation import check_kind

CONFIG = "config.json"
RESULTS = "results.json"  # of an evaluation
_SCORES = {"parameters": int, "validation_perplexity": float, "test_perplexity": float}


def read_config(directory: str | Path, kind: Any = dict, remedy: str = "Restore it.") -> dict:
    """Reads the `config.json` of a run and checks its kind. Errors end with the remedy."""
    return read_json(Path(directory) / CONFIG, kind, remedy)


def read_values(path: str | Path) -> dict[str, Any]:
    """Reads values of a run from a JSON or TOML file, such as a `config.json`."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        values = tomllib.loads(text) if Path(path).suffix == ".toml" else json.loads(text)
        check_kind(values, dict)
    except OSError as error:
        raise type(error)(f"{path}: cannot be read ({error.strerror}).") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}. Give a JSON or TOML file of values.") from error
    return values


def origin(directory: str | Path) -> dict:
    """Origin of the model of a run: `command`, `parameters` and perplexities, if known."""
    row, results = {}, Path(directory) / RESULTS
    if (Path(directory) / CONFIG).is_file():
        command = read_config(directory, {"command": (str, None, ...)}).get("command")
        row = {"command": command} if command else {}
    if results.is_file():
        scores = read_json(results, _SCORES, "Evaluate the run again, which writes it.")
        row |= {name: scores[name] for name in _SCORES}
    return row


def check_new(directory: str | Path, prepared: Sequence[str] = (), resumes: bool = False) -> None:
    """Checks that the directory of a new run has at most the `prepared` files, and no lock.

    `resumes`: whether runs of its kind can be resumed, for the message.
    """
    check_unlocked(directory)
    _check_empty(directory, prepared, resumes)


def _check_empty(directory, prepared, resumes):
    directory, allowed = Path(directory), {LOCK, *prepared}
    if directory.exists() and not directory.is_dir():
        raise FileExistsError(f"{directory}: is not a directory. Give another --output.")
    paths = directory.iterdir() if directory.exists() else ()
    if any(path.name not in allowed and not is_left_over(path) for path in paths):
        can_resume = resumes and (directory / CONFIG).is_file()
        remedy = "Add --resume to resume it" if can_resume else "Move it away"
        raise FileExistsError(f"{directory}: exists already. {remedy}, or give another --output.")


@contextlib.contextmanager
def running(
    directory: str | Path,
    content: Mapping[str, Any],
    resume: bool | None = None,
    prepared: Sequence[str] = (),
) -> Iterator[None]:
    """A context that locks the directory of a run. That of a new run is created with `config.json`.

    `content` is that of `config.json`, to which the versions of libraries are added; `resume` is
    `None` if runs of its kind cannot be resumed.
    """
    directory = Path(directory)
    if not resume:
        _check_empty(directory, prepared, resume is not None)
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(
                f"{directory}: cannot be written ({error.strerror}). Give another --output."
            ) from error
    with locked(directory):
        if not resume:
            _check_empty(directory, prepared, resume is not None)  # another may have begun
            keras = sys.modules.get("keras")  # if the run has imported it
            backend = {} if keras is None else {"backend": keras.backend.backend()}
            write_json(directory / CONFIG, {**content, "versions": {**backend, **versions()}})
        try:
            yield
        except KeyboardInterrupt:
            if resume is None:
                raise
            raise KeyboardInterrupt("Run the same command with --resume to resume.") from None


def has_begun(directory: str | Path, prepared: Sequence[str] = ()) -> bool:
    """Whether a run has its first checkpoint; it writes the files `prepared` before."""
    names = {path.name for path in Path(directory).iterdir() if not path.name.startswith(".")}
    return not names <= {CONFIG, *prepared}
