"""A bidirectional LSTM that predicts each word of a sentence from all others."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.dependencies.tree import Edge
from keras_onlstm.models.tree_lstm import TreeLSTM
from keras_onlstm.tree_lstm.schedule import BatchSchedule, RowCapacity, TreeSchedule
from keras_onlstm.utils import Tensor


@keras.saving.register_keras_serializable(package="keras_onlstm")
class BidirectionalLSTM(TreeLSTM):
    """Predicts each word from the words before and after it, with one LSTM per direction.

    A baseline of Zhang et al. 2016. It is `TreeLSTM` on two chains: GEN-R reads the words forward
    from ROOT, GEN-L backward from ROOT, and a word is predicted from the two states that have not
    read it. The results are conditional probabilities of single words; their product is not the
    probability of a sentence.

    Source: Zhang, Lu, Lapata 2016, "Top-down Tree Long Short-Term Memory Networks", section 4.1,
    https://aclanthology.org/N16-1035.

    Args:
        vocabulary_size: positive integer, V.
        embedding_dim: positive integer, E: size of word vectors.
        units: positive integer, U, of each LSTM. The softmax has 2 U inputs.
        num_layers: positive integer, layers of each.
        dropout, vocabulary, seed, input_dropout, output_bias: as of `TreeLSTM`.
        **kwargs: `name`, `dtype` of `keras.Model`.

    Call arguments and returns: as of `TreeLSTM`.

    Example:

    >>> from keras_onlstm.dependencies import chain
    >>> from keras_onlstm.models import BidirectionalLSTM
    >>> words = ["<unk>", "<root>", "a", "cat", "sleeps"]
    >>> model = BidirectionalLSTM(5, embedding_dim=4, units=8, vocabulary=words)
    >>> [scores.shape for scores in model.score([chain("a cat sleeps here".split())])]
    [(4,)]
    """

    graphs = ()
    tasks = TreeLSTM.graphs
    _lstms = ("gen_l", "gen_r")
    _sides = 2

    def __init__(
        self,
        vocabulary_size: int,
        embedding_dim: int,
        units: int,
        num_layers: int = 1,
        dropout: float = 0.0,
        vocabulary: Sequence[str] | None = None,
        seed: int | None = None,
        input_dropout: float = 0.0,
        output_bias: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            vocabulary_size, embedding_dim, units, num_layers, dropout=dropout,
            vocabulary=vocabulary, seed=seed, input_dropout=input_dropout,
            output_bias=output_bias, **kwargs,
        )  # fmt: skip
        for name in ("left_dependents", "left_layers", "sequential"):
            del self._config[name]

    @property
    def title(self) -> str:
        return "bidirectional LSTM"

    def hidden(self, grids: Mapping[str, Tensor], training: bool = False) -> Tensor:
        # Two rows per word, from the words before it and from those after it: (2 N, U) -> (N, 2 U)
        rows = super().hidden(grids, training)
        return ops.reshape(rows, (-1, 2 * rows.shape[-1]))

    def schedule_tree(self, tree: DependencyTree) -> TreeSchedule:
        """Converts a chain to a `TreeSchedule` with two rows per word, one for each LSTM."""
        self._check_chain(tree)
        encoder = self._encoding()
        count, root = len(tree), encoder.root
        ids = np.array([root, *encoder(tree.words), root], "int32")
        positions = np.arange(count, dtype="int32")
        before, after = 2 * (positions - 1), 2 * (positions + 1) + 1
        source = np.stack([np.where(positions, before, -1), np.append(after[:-1], -1)], 1)
        edge = np.tile(np.array([Edge.RIGHT, Edge.LEFT], "int32"), count)
        counts = np.zeros((count, len(Edge)), "int32")
        counts[:, [Edge.LEFT, Edge.RIGHT]] = 1
        return TreeSchedule(
            np.repeat(ids[1:-1], 2),
            np.stack([ids[:-2], ids[2:]], 1).reshape(-1),
            source.reshape(-1).astype("int32"),
            edge,
            np.stack([positions, positions[::-1]], 1).reshape(-1),
            np.zeros(2 * count, "int32"),
            counts,
            [],
        )

    def schedule_batch(
        self, schedules: Sequence[TreeSchedule], capacity: RowCapacity | None = None
    ) -> BatchSchedule:
        half = sum((capacity or RowCapacity())[: len(Edge)]) // 2
        scheduled = super().schedule_batch(schedules, RowCapacity(half, half, 0, 0, 0))
        return scheduled._replace(
            targets=scheduled.targets[::2],
            weights=scheduled.weights[::2],
            words=scheduled.words // 2,
        )
