"""Training that resumes exactly: batches in a known order, checkpoints of every bit, records."""

from keras_onlstm.training.batches import PairBatches
from keras_onlstm.training.checkpoint import load_checkpoint, save_checkpoint
from keras_onlstm.training.trainer import Trainer

__all__ = ["PairBatches", "Trainer", "load_checkpoint", "save_checkpoint"]
