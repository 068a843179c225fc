"""Training that resumes exactly: batches in a known order, checkpoints of every bit, records."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from keras_onlstm.training.settings import Setting, changed, check_settings, described

if TYPE_CHECKING:
    from keras_onlstm.training.averaging import AveragedAdam, AveragedSGD, NonMonotonicTrigger
    from keras_onlstm.training.batches import PairBatches
    from keras_onlstm.training.checkpoint import load_checkpoint, save_checkpoint
    from keras_onlstm.training.halving import HalvingWithRollback
    from keras_onlstm.training.noise_contrastive import NoiseContrastive
    from keras_onlstm.training.sentences import SentenceBatches
    from keras_onlstm.training.trainer import Trainer
    from keras_onlstm.training.trees import TreeBatches, TreeLearner, evaluate_trees
    from keras_onlstm.training.truncated import ResetStates, TruncatedModel, evaluate_windows
    from keras_onlstm.training.windows import Windows, contiguous

__all__ = [
    "AveragedAdam",
    "AveragedSGD",
    "HalvingWithRollback",
    "NoiseContrastive",
    "NonMonotonicTrigger",
    "PairBatches",
    "ResetStates",
    "SentenceBatches",
    "Setting",
    "Trainer",
    "TreeBatches",
    "TreeLearner",
    "TruncatedModel",
    "Windows",
    "changed",
    "check_settings",
    "contiguous",
    "described",
    "evaluate_trees",
    "evaluate_windows",
    "load_checkpoint",
    "save_checkpoint",
]

# The modules that import Keras, which takes seconds and which `--help` does not need.
_MODULES = (
    "averaging",
    "batches",
    "checkpoint",
    "halving",
    "noise_contrastive",
    "sentences",
    "trainer",
    "trees",
    "truncated",
    "windows",
)


def __getattr__(name: str) -> Any:
    for module in _MODULES if name in __all__ else ():
        names = vars(import_module(f"{__name__}.{module}"))
        if name in names:
            return names[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
