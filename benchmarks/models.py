"""Training steps of complete models, by kind of model."""

import classifiers
import language_models
import prpn
import trees
from configurations import CLASSIFIER, PRPN, TREES


def functions(name, configuration, dtype):
    """Functions to time, by measure: for most models only `train`."""
    if configuration.model == TREES:
        return trees.functions(name, configuration, dtype)
    return {"train": training_step(name, configuration, dtype)}


def training_step(name, configuration, dtype):
    """A function that runs one training step and waits until it is done."""
    if configuration.model == CLASSIFIER:
        return classifiers.training_step(name, configuration, dtype)
    kind = prpn if configuration.model == PRPN else language_models
    reader, optimizer = kind.reader_of(name, configuration, dtype)
    return language_models.training_step(reader, optimizer, configuration)
