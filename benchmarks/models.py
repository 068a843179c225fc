"""Training steps of complete models, by kind of model."""

import classifiers
import language_models
import prpn
import trees
from configurations import CLASSIFIER, PRPN, TREES


def functions(name, configuration, dtype):
    """Functions to time: `train`, and `planning` for trees."""
    if configuration.model == TREES:
        return trees.functions(name, configuration, dtype)
    return {"train": training_step(name, configuration, dtype)}


def training_step(name, configuration, dtype):
    """Returns a function that runs one training step and waits for it."""
    if configuration.model == CLASSIFIER:
        return classifiers.training_step(name, configuration, dtype)
    module = prpn if configuration.model == PRPN else language_models
    model, optimizer = module.build(name, configuration, dtype)
    return language_models.training_step(model, optimizer, configuration)
