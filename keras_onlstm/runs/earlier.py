"""Converts runs of earlier versions to the current names and values."""

from collections.abc import Callable, Mapping
from typing import Any

from keras_onlstm.utils.validation import check_kind

_NAMES = {
    "activation": "activation_regularization",
    "temporal": "temporal_regularization",
    "window": "bptt",
    "jitter": "variable_bptt",
    "clip": "clipnorm",
    "decay": "weight_decay",
    "precision": "compute_dtype",
    "start_from": "init_from",
    "start": "initialization",
    "hosts": "num_processes",
}
# Optimizers used to include the schedule: those of language models, then of TreeLSTM.
_OPTIMIZERS: dict[str, dict[str, Any]] = {
    "sgd": {"optimizer": "asgd", "schedule": "constant"},
    "plateau": {"optimizer": "sgd", "schedule": "plateau"},
    "adam": {"optimizer": "adam", "schedule": "cosine"},
    "halved": {
        "optimizer": "adam_l2", "beta_1": 0.0, "epsilon": 1e-9,
        "schedule": "plateau", "plateau_factor": 0.5, "plateau_patience": 2,
    },
}  # fmt: skip
_TREE_OPTIMIZERS: dict[str, dict[str, Any]] = {
    "adam": {"optimizer": "adam", "schedule": "cosine"},
    "halved": {"optimizer": "sgd", "schedule": "plateau"},
}
# By kind of model: former names of presets, and defaults of later arguments.
_PRESETS = {
    "language_model": {
        "smoke": "debug", "parser": "small", "small": "medium", "reproduction": "large",
    },
    "prpn": {"smoke": "debug", "parsing": "small", "small": "medium", "characters": "large"},
    "tree_lstm": {"smoke": "debug"},
    "pair_classifier": {"smoke": "debug", "demo": "small", "default": "medium"},
}  # fmt: skip
_TEXT = {
    "max_words": None, "characters": False, "sentences": False, "test_sentences": False,
    "compute_dtype": "float32", "init_from": None, "devices": 1, "num_processes": 1,
}  # fmt: skip
_SYNTAX = {"max_words": None, "grammar": None, "compute_dtype": "float32", "devices": 1}
_RUN = {"arguments": dict, "values": (dict, None, ...), "command": (str, None, ...)}


def current_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values under their current names, otherwise unchanged."""
    return {_NAMES.get(name, name): value for name, value in values.items()}


def current_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a run of this version or an earlier one under their current names.

    >>> from keras_onlstm.runs.earlier import current_values
    >>> current_values({"clip": 5.0, "longest": 150, "optimizer": "halved"})
    {'clipnorm': 5.0, 'longest': 150, 'optimizer': 'sgd', 'schedule': 'plateau'}
    """
    current = current_names(values)
    if current.get("compute_dtype") == "mixed_bfloat16":
        current["compute_dtype"] = "bfloat16"
    optimizer = current.get("optimizer")
    if "schedule" in current or not isinstance(optimizer, str):
        return current
    if "longest" in current:
        return current | _TREE_OPTIMIZERS.get(optimizer, {})
    current |= {"beta_1": 0.9, "epsilon": 1e-7, "plateau_factor": 0.25, "plateau_patience": 1}
    current |= _OPTIMIZERS.get(optimizer, {})
    if current["optimizer"] == "adam" and current.get("weight_decay"):
        current["optimizer"] = "adamw"
    return current


def current_config(
    config: Mapping[str, Any],
    model: str = "language_model",
    preset_values: Callable[[str], Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """The content of a `config.json` in its current form. One of this version is not changed.

    `model` is the assumed kind of model of a run of an earlier version, unless it is PRPN. The
    earliest runs stored only the name of a preset, whose values `preset_values` returns.
    """
    if "model" in config:
        return current_names(config)
    check_kind(config, _RUN)
    values = current_values(config.get("values") or {})
    arguments = current_values(config["arguments"])
    if arguments.get("model") == "prpn":
        model = "prpn"
    if isinstance(arguments.get("preset"), str):
        arguments["preset"] = _PRESETS[model].get(arguments["preset"], arguments["preset"])
        if not values and preset_values is not None:
            values = dict(preset_values(arguments["preset"]))
    if model in ("language_model", "prpn"):
        arguments = (_SYNTAX if "brown" in arguments else _TEXT) | arguments
    if arguments.get("max_words") is None and values.get("max_words") is not None:
        arguments["max_words"] = values["max_words"]
    if model != "pair_classifier":
        data = arguments.get("data") or []
        arguments["data"] = [data] if isinstance(data, str) else data
    return {**values, **arguments, "model": model}
