"""Training that resumes exactly: batches in a known order, checkpoints of every bit, records."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keras_onlstm.training.bptt import (
        ResetStates,
        TruncatedModel,
        Windows,
        contiguous,
        evaluate_windows,
    )
    from keras_onlstm.training.checkpoint import load_checkpoint, save_checkpoint
    from keras_onlstm.training.optimizers import AveragedAdam, AveragedSGD, PenalizedAdam
    from keras_onlstm.training.pair_batches import PairBatches
    from keras_onlstm.training.schedules import (
        NonMonotonicTrigger,
        PlateauSchedule,
        WarmupSchedule,
    )
    from keras_onlstm.training.sentence_batches import SentenceBatches
    from keras_onlstm.training.trainer import Trainer
    from keras_onlstm.training.tree_batches import TreeBatches
    from keras_onlstm.training.tree_models import HalvingWithRollback, TreeLearner, evaluate_trees

# The modules that import Keras, which takes seconds and which `--help` does not need.
_MODULES = {
    "bptt": ["ResetStates", "TruncatedModel", "Windows", "contiguous", "evaluate_windows"],
    "checkpoint": ["load_checkpoint", "save_checkpoint"],
    "optimizers": ["AveragedAdam", "AveragedSGD", "PenalizedAdam"],
    "pair_batches": ["PairBatches"],
    "schedules": ["NonMonotonicTrigger", "PlateauSchedule", "WarmupSchedule"],
    "sentence_batches": ["SentenceBatches"],
    "trainer": ["Trainer"],
    "tree_batches": ["TreeBatches"],
    "tree_models": ["HalvingWithRollback", "TreeLearner", "evaluate_trees"],
}
__all__ = sorted(name for names in _MODULES.values() for name in names)


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
