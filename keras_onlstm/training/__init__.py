"""Training that resumes exactly: reproducible batches, complete checkpoints, metrics."""

from typing import TYPE_CHECKING

from keras_onlstm.utils.validation import module_getattr

if TYPE_CHECKING:
    from keras_onlstm.training.batches import SentenceBatches, TreeBatches, Windows, contiguous
    from keras_onlstm.training.bptt import ResetStates, TruncatedModel, evaluate_windows
    from keras_onlstm.training.checkpoint import load_checkpoint, save_checkpoint
    from keras_onlstm.training.optimizers import (
        AveragedAdam,
        AveragedSGD,
        NonMonotonicTrigger,
        PenalizedAdam,
        PlateauSchedule,
        WarmupSchedule,
    )
    from keras_onlstm.training.pair_classifiers import PairBatches
    from keras_onlstm.training.trainer import Trainer
    from keras_onlstm.training.tree_models import HalvingWithRollback, TreeLearner, evaluate_trees

__all__ = [
    "AveragedAdam", "AveragedSGD", "HalvingWithRollback", "NonMonotonicTrigger", "PairBatches",
    "PenalizedAdam", "PlateauSchedule", "ResetStates", "SentenceBatches", "Trainer", "TreeBatches",
    "TreeLearner", "TruncatedModel", "WarmupSchedule", "Windows", "contiguous", "evaluate_trees",
    "evaluate_windows", "load_checkpoint", "save_checkpoint",
]  # fmt: skip

# Imported when needed: they import Keras, which takes seconds and which `--help` does not need.
_MODULES = ("batches", "bptt", "checkpoint", "optimizers", "pair_classifiers", "trainer",
            "tree_models")  # fmt: skip

__getattr__ = module_getattr(__name__, {}, _MODULES, __all__)
