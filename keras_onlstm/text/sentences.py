"""Sentences of ids: cut from a text, and in batches. Does not import Keras."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

import numpy as np

from keras_onlstm.text.vocabulary import Encoder
from keras_onlstm.utils import Sentence, StrPath
from keras_onlstm.utils.validation import renamed_attribute


def split(ids: np.ndarray, eos: int) -> list[np.ndarray]:
    """Splits a text after each `eos` into nonempty arrays without `eos`."""
    ends = np.flatnonzero(ids == eos)
    first, *others = np.split(ids, ends)
    return [part for part in (first, *(other[1:] for other in others)) if len(part)]


def _joined(sentences, eos):
    return np.concatenate([np.append(sentence, eos) for sentence in sentences]).astype("int32")


def _keys(sentences, ignored):
    """The ids of sentences, without ignored ids."""
    return [tuple(i for i in map(int, sentence) if i not in ignored) for sentence in sentences]


def without_sentences(
    ids: np.ndarray, eos: int, others: Iterable[Sequence[int]], ignored: Container[int] = ()
) -> np.ndarray:
    """Removes sentences from a text, compared without the ids in `ignored`."""
    unwanted, present = set(_keys(others, ignored)), split(ids, eos)
    keys = _keys(present, ignored)
    remaining = [part for part, key in zip(present, keys, strict=True) if key not in unwanted]
    if not remaining:
        raise ValueError("The training text is empty without the sentences to be left out.")
    return _joined(remaining, eos)


def with_sentences(
    ids: np.ndarray, eos: int, others: Iterable[Sequence[int]], ignored: Container[int] = ()
) -> np.ndarray:
    """Appends sentences missing from a text, compared without the ids in `ignored`."""
    present, others = split(ids, eos), list(others)
    known, keys = set(_keys(present, ignored)), _keys(others, ignored)
    missing = [part for part, key in zip(others, keys, strict=True) if key not in known]
    return _joined([*present, *missing], eos)


# A length that this many sentences have is not padded: it is worth a shape of its own.
OFTEN = 512
# Maximum words in a batch, to limit the memory of the logits. A longer sentence is a batch.
WORDS = 8192


def in_batches(
    sentences: Iterable[Sentence],
    encoder: Encoder,
    function: Callable[[np.ndarray, np.ndarray], Iterable[Any]],
    batch_size: int = 32,
    multiple: int = 1,
    closed: bool = False,
) -> list[tuple[Any, int]]:
    """Applies a function to sentences in batches of similar length.

    The function gets ids, int32 (batch, time), and lengths, int32 (batch,), which include `<eos>`;
    it returns one result per row. A row is `<eos>`, the words, another `<eos>` if `closed`, and
    padding with `<eos>` until `multiple` divides `time`, to have few shapes.

    Returns pairs of the result and the number of words, in the order of the sentences.

    >>> encoder = Encoder(["<eos>", "<unk>", "the", "cat"])
    >>> in_batches(["the cat", "the"], encoder, lambda ids, lengths: ids.tolist())
    [([0, 2, 3], 2), ([0, 2, 0], 1)]
    """
    ids_of = [encoder(sentence) for sentence in sentences]
    order = sorted(range(len(ids_of)), key=lambda index: len(ids_of[index]))
    length_counts = Counter(map(len, ids_of))
    results: list[Any] = [None] * len(ids_of)
    start = 0
    while start < len(order):
        count = min(batch_size, len(order) - start)
        while count > 1 and count * len(ids_of[order[start + count - 1]]) > WORDS:
            count //= 2
        group = order[start : start + count]
        start += count
        lengths = np.array([1 + len(ids_of[index]) + closed for index in group], "int32")
        longest, time = len(ids_of[group[-1]]), int(lengths[-1])
        # Empty sentences are always padded: a lone `<eos>` leaves nothing to predict.
        if not longest or length_counts[longest] < OFTEN:
            time = -(-time // multiple) * multiple
        ids = np.full((len(group), time), encoder.eos, "int32")  # (B, T)
        for row, index in enumerate(group):
            ids[row, 1 : len(ids_of[index]) + 1] = ids_of[index]
        for index, result in zip(group, function(ids, lengths), strict=True):
            results[index] = result, len(ids_of[index])
    return results


def contexts(ids: np.ndarray, lengths: np.ndarray) -> dict[str, np.ndarray]:
    """Finds equal contexts in a batch, for which a model predicts the next word only once.

    Returns `ids`, int32 (batch, time); `contexts`, int32 (batch, time - 1): the number of the
    context of every id but the first; and `firsts`, int32 (N,): the first index in
    (batch * (time - 1),) of each context. N is this size, a half or a quarter of it, to have few
    shapes.
    """
    rows, time = ids.shape[0], ids.shape[1] - 1
    numbers = np.zeros((rows, time), "int32")  # arbitrary after the end of a sentence
    known: dict[tuple[int | None, int], int] = {}
    firsts: list[int] = []
    for row, (sentence, length) in enumerate(zip(ids.tolist(), lengths.tolist(), strict=True)):
        context = None
        for position in range(length - 1):
            context = known.setdefault((context, sentence[position]), len(firsts))
            if context == len(firsts):
                firsts.append(row * time + position)
            numbers[row, position] = context
    sizes = (-(-rows * time // part) for part in (4, 2, 1))
    size = next(size for size in sizes if size >= len(firsts))
    firsts += [0] * (size - len(firsts))
    return {"ids": ids, "contexts": numbers, "firsts": np.array(firsts, "int32")}


def chosen_gates(gate: str | None, gates: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the gates that `gate` selects: one, `"both"` of two, or `None` for the first."""
    if gate is None:
        return gates[:1]
    if gate == "both" and len(gates) == 2:
        return tuple(gates)
    if gate not in gates:
        both = " or 'both'" if len(gates) == 2 else ""
        raise ValueError(f"gate must be {', '.join(map(repr, gates))}{both}, got {gate!r}.")
    return (gate,)


class DistanceModel:
    """A model that measures distances in sentences, from which `Parser` builds trees."""

    vocabulary: list[str] | None = None
    gates: tuple[str, ...] = ()  # names of the gates with distances
    layers_per_model: tuple[int, ...] = ()  # number of layers with distances of each model
    members = renamed_attribute("members", "layers_per_model")
    _file: StrPath | None = None
    _encoder: Encoder | None = None  # created for the first sentence

    @property
    def num_layers(self) -> int:
        """Number of layers with distances, of all models together."""
        return sum(self.layers_per_model)

    @property
    def default_layer(self) -> int | None:
        """Layer that builds trees: the second of a single model, as in the paper; `None`: all."""
        return min(2, self.layers_per_model[0]) if len(self.layers_per_model) == 1 else None

    def encode(self, sentence: Sentence) -> list[int]:
        """The ids of a sentence: words separated by blanks, or a list. Unknown words are `<unk>`.

        A model without a vocabulary with `<eos>` and `<unk>` is a `ValueError`.
        """
        return self._encoding()(sentence)

    def _encoding(self) -> Encoder:
        if self._encoder is None:
            self._encoder = Encoder(self.vocabulary, self._file)
        return self._encoder

    def distances(self, sentences: Iterable[Sentence], gate: str | None = None) -> list[np.ndarray]:
        """Measures the share of ordered neurons that every layer forgets, or writes, at each word.

        Args:
            sentences: list of sentences: words separated by blanks, or lists of words.
            gate: one of the names in `gates`, or `"both"`. Default: the first, the forget gates.

        Returns:
            List of arrays (layers, words), in [0, 1); with `"both"` (2 layers, words), those of the
            forget gates first.

        Raises:
            ValueError: if the model has no vocabulary or no distances, or the gate is unknown.
        """
        if not self.gates:
            raise ValueError(
                "This model has no distances, because it is an LSTM. Use recurrent='onlstm'."
            )
        measured = self._measured(sentences, chosen_gates(gate, self.gates))
        return [distances[:, 1 : words + 1] for distances, words in measured]

    def _measured(self, sentences, gates):
        """Pairs of distances (rows of gates, `<eos>` and words) and the number of words."""
        raise NotImplementedError
