"""The values that shape a training: what each may be, what it means, and how one is changed."""

import difflib
import json
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from keras_onlstm.utils.reading import Number, check_kind

__all__ = ["Setting", "changed", "check_settings", "current_values", "described"]

# Names that runs of earlier versions stored, and those of today.
_RENAMED = {
    "activation": "activation_regularization",
    "temporal": "temporal_regularization",
    "window": "bptt",
    "jitter": "variable_bptt",
    "clip": "clipnorm",
    "decay": "weight_decay",
}
# Their optimizers, which included the schedule, of language models and of TreeLSTM.
_OPTIMIZERS = {
    "sgd": {"optimizer": "asgd", "schedule": "constant"},
    "plateau": {"optimizer": "sgd", "schedule": "plateau"},
    "adam": {"optimizer": "adam", "schedule": "cosine"},
    "halved": {
        "optimizer": "adam_l2",
        "beta_1": 0.0,
        "epsilon": 1e-9,
        "schedule": "plateau",
        "plateau_factor": 0.5,
        "plateau_patience": 2,
    },
}
_TREE_OPTIMIZERS = {
    "adam": {"optimizer": "adam", "schedule": "cosine"},
    "halved": {"optimizer": "sgd", "schedule": "plateau"},
}


class Setting(NamedTuple):
    """A value that shapes a training.

    Attributes:
        kind: what it may be, as `keras_onlstm.utils.reading` describes.
        meaning: a few words.
    """

    kind: Any
    meaning: str


def check_settings(values: dict[str, Any], settings: Mapping[str, Setting]) -> None:
    """Refuses values that are not what they may be, or not all there.

    Args:
        values: dictionary.
        settings: dictionary of `Setting`, of all names.

    Raises:
        ValueError: if one is missing, of another kind, or unknown; the message names it.

    Example:

    >>> from keras_onlstm.utils.reading import Integer
    >>> from keras_onlstm.training.settings import Setting, check_settings
    >>> check_settings({"units": 0}, {"units": Setting(Integer(1), "units of a layer")})
    Traceback (most recent call last):
    ...
    ValueError: units is an integer, 1 or above, not 0
    """
    check_kind(values, {name: setting.kind for name, setting in settings.items()})
    for name in values:
        _check_known(name, settings)


def current_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a run under their current names.

    Args:
        values: dictionary, which a run of this version or of an earlier one stored.

    Returns:
        Dictionary. Values of this version stay as they are.

    Example:

    >>> from keras_onlstm.training.settings import current_values
    >>> current_values({"clip": 5.0, "longest": 150, "optimizer": "halved"})
    {'clipnorm': 5.0, 'longest': 150, 'optimizer': 'sgd', 'schedule': 'plateau'}
    """
    optimizer = values.get("optimizer")
    if "schedule" in values or not isinstance(optimizer, str):
        return dict(values)
    found = {_RENAMED.get(name, name): value for name, value in values.items()}
    if "longest" in found:
        return found | _TREE_OPTIMIZERS.get(optimizer, {})
    found |= {"beta_1": 0.9, "epsilon": 1e-7, "plateau_factor": 0.25, "plateau_patience": 1}
    found |= _OPTIMIZERS.get(optimizer, {})
    if found["optimizer"] == "adam" and found.get("weight_decay"):
        found["optimizer"] = "adamw"
    return found


def _check_known(name, settings):
    if name not in settings:
        close = difflib.get_close_matches(name, settings, 1)
        hint = f"Is it {close[0]}?" if close else f"There are {', '.join(settings)}."
        raise ValueError(f"there is no value {name!r}. {hint}")


def changed(
    values: Mapping[str, Any], texts: Iterable[str], settings: Mapping[str, Setting]
) -> dict[str, Any]:
    """Values, some of which are changed from a command line.

    Args:
        values: dictionary.
        texts: list of `NAME=VALUE`; a value is JSON, or the text of a choice.
        settings: dictionary of `Setting`.

    Returns:
        Dictionary.

    Raises:
        ValueError: if there is no such value, or it is not what it may be.

    Example:

    >>> from keras_onlstm.utils.reading import Integer
    >>> from keras_onlstm.training.settings import Setting, changed
    >>> settings = {"units": Setting(Integer(1), "units of a layer")}
    >>> changed({"units": 20}, ["units=30"], settings)
    {'units': 30}
    >>> changed({"units": 20}, ["unit=30"], settings)
    Traceback (most recent call last):
    ...
    ValueError: --set unit=30: there is no value 'unit'. Is it units?
    """
    values = dict(values)
    for text in texts:
        name, equals, written = text.partition("=")
        try:
            if not equals:
                raise ValueError("is to be NAME=VALUE")
            _check_known(name, settings)
            value, kind = _value(written), settings[name].kind
            check_kind(value, kind, name)
            # Keras takes a rate of 1 for a mistake, but not one of 1.0.
            values[name] = float(value) if isinstance(kind, Number) else value
        except (ValueError, OverflowError) as error:
            raise ValueError(f"--set {text}: {error}") from None
    return values


def _value(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def described(settings: Mapping[str, Setting], presets: Mapping[str, Mapping[str, Any]]) -> str:
    """All values with their meaning and what they are in each preset, for `--help`.

    Args:
        settings: dictionary of `Setting`.
        presets: dictionary from names to dictionaries of values.

    Returns:
        Text of many lines.

    Example:

    >>> from keras_onlstm.utils.reading import Integer
    >>> from keras_onlstm.training import Setting, described
    >>> settings = {"units": Setting(Integer(1), "units of a layer")}
    >>> print(described(settings, {"smoke": {"units": 8}, "default": {"units": 650}}))
    values for --set, with those of smoke, default:
      units: units of a layer (8, 650)
    """
    lines = [f"values for --set, with those of {', '.join(presets)}:"]
    for name, setting in settings.items():
        choices = ", ".join(json.dumps(values[name]).strip('"') for values in presets.values())
        text = f"{name}: {setting.meaning} ({choices})"
        lines += textwrap.wrap(text, 96, initial_indent="  ", subsequent_indent="      ")
    return "\n".join(lines)
