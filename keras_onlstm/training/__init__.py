"""Training that resumes exactly: batches in a known order, checkpoints of every bit, records."""

from typing import TYPE_CHECKING

from keras_onlstm.utils.lazy import lazy_names

if TYPE_CHECKING:
    from keras_onlstm.training.averaging import AveragedAdam, AveragedSGD, NonMonotonicTrigger
    from keras_onlstm.training.batches import PairBatches
    from keras_onlstm.training.checkpoint import load_checkpoint, save_checkpoint
    from keras_onlstm.training.halving import HalvingWithRollback
    from keras_onlstm.training.noise_contrastive import NoiseContrastive
    from keras_onlstm.training.sentences import SentenceBatches
    from keras_onlstm.training.settings import Setting, changed, check_settings, described
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

_HOMES = {
    "AveragedAdam": "averaging",
    "AveragedSGD": "averaging",
    "HalvingWithRollback": "halving",
    "NoiseContrastive": "noise_contrastive",
    "NonMonotonicTrigger": "averaging",
    "PairBatches": "batches",
    "ResetStates": "truncated",
    "SentenceBatches": "sentences",
    "Setting": "settings",
    "Trainer": "trainer",
    "TreeBatches": "trees",
    "TreeLearner": "trees",
    "TruncatedModel": "truncated",
    "Windows": "windows",
    "changed": "settings",
    "check_settings": "settings",
    "contiguous": "windows",
    "described": "settings",
    "evaluate_trees": "trees",
    "evaluate_windows": "truncated",
    "load_checkpoint": "checkpoint",
    "save_checkpoint": "checkpoint",
}

__getattr__, __dir__ = lazy_names(__name__, __all__, _HOMES)
