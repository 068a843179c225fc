"""Sentences as ids, and many of them read in batches of similar length. No Keras.

What models of Keras and exported graphs have in common.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from keras_onlstm._types import Sentence, StrPath
from keras_onlstm.datasets.penn_treebank import EOS, UNKNOWN

__all__ = [
    "Encoder",
    "Measuring",
    "Reading",
    "check_vocabulary",
    "chosen_gates",
    "contexts",
    "read",
    "usual_reading",
]

# So many sentences of a length are worth a shape of their own.
OFTEN = 512
# At most so many words at once, and one sentence at the least: what is V times as large fits.
WORDS = 8192


class Encoder:
    """Finds the ids of words.

    Args:
        vocabulary: list of words; the place of a word is its id. Or `None`, which is refused.
        path: of the file of the model that has it, or `None`: the model was made here.

    Attributes:
        vocabulary: as it was given.
        eos: integer, the id of `<eos>`.

    Raises:
        ValueError: if there is no vocabulary, or one without `<eos>` and `<unk>`.

    Example:

    >>> from keras_onlstm.sentences import Encoder
    >>> encoder = Encoder(["<eos>", "<unk>", "the", "cat"])
    >>> encoder("the black cat"), encoder.eos
    ([2, 1, 3], 0)
    """

    def __init__(self, vocabulary: Sequence[str] | None, path: StrPath | None = None) -> None:
        self.vocabulary = check_vocabulary(vocabulary, path)
        self._places = {word: place for place, word in enumerate(self.vocabulary)}
        self.eos = self._places[EOS]

    def __call__(self, sentence: Sentence) -> list[int]:
        """The ids of a sentence: words apart by blanks, or a list of words."""
        words = sentence.split() if isinstance(sentence, str) else sentence
        unknown = self._places[UNKNOWN]
        return [self._places.get(word, unknown) for word in words]


def check_vocabulary(
    vocabulary: Sequence[str] | None, path: StrPath | None = None
) -> Sequence[str]:
    """Refuses what sentences cannot be read with.

    Args:
        vocabulary: list of words, or `None`.
        path: as of `Encoder`.

    Returns:
        The vocabulary.

    Raises:
        ValueError: if there is no vocabulary, or one without `<eos>` and `<unk>`.

    Example:

    >>> from keras_onlstm.sentences import check_vocabulary
    >>> check_vocabulary(["the", "cat"], "cats.keras")
    Traceback (most recent call last):
    ...
    ValueError: cats.keras: its model has no vocabulary with <eos> and <unk>. Give it one when it
    is made: LanguageModel(..., vocabulary=words).
    """
    if vocabulary is None or not {EOS, UNKNOWN} <= set(vocabulary):
        model = "The model" if path is None else f"{path}: its model"
        raise ValueError(
            f"{model} has no vocabulary with {EOS} and {UNKNOWN}. Give it one when it is made: "
            "LanguageModel(..., vocabulary=words)."
        )
    return vocabulary


def read(
    sentences: Iterable[Sentence],
    encoder: Encoder,
    function: Callable[[np.ndarray, np.ndarray], Iterable[Any]],
    batch_size: int = 32,
    multiple: int = 1,
    closed: bool = False,
) -> list[tuple[Any, int]]:
    """What a function makes of sentences, which it gets in batches of similar length.

    A sentence is `<eos>` and its words, `closed` another `<eos>`. Behind it stands `<eos>` as well.

    Args:
        sentences: list of what `encoder` takes.
        encoder: `Encoder`.
        function: of ids, int32 (batch, time), and lengths, int32 (batch,), the `<eos>` counted.
            Returns one result a row.
        batch_size: integer, at most so many sentences at once; fewer if they are very long.
        multiple: integer that divides `time`: few shapes, if a backend compiles for each. Lengths
            that hundreds of sentences have are not padded, which pays for one more shape.
        closed: whether an `<eos>` closes the sentence.

    Returns:
        List of pairs, in the order of the sentences: the result and the number of words.

    Example:

    >>> from keras_onlstm.sentences import Encoder, read
    >>> encoder = Encoder(["<eos>", "<unk>", "the", "cat"])
    >>> read(["the cat", "the"], encoder, lambda ids, lengths: ids.tolist())
    [([0, 2, 3], 2), ([0, 2, 0], 1)]
    """
    ids_of = [encoder(sentence) for sentence in sentences]
    order = sorted(range(len(ids_of)), key=lambda index: len(ids_of[index]))
    many = Counter(map(len, ids_of))
    found: list[Any] = [None] * len(ids_of)
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
        if not longest or many[longest] < OFTEN:
            time = -(-time // multiple) * multiple
        ids = np.full((len(group), time), encoder.eos, "int32")  # (B, T)
        for row, index in enumerate(group):
            ids[row, 1 : len(ids_of[index]) + 1] = ids_of[index]
        for index, result in zip(group, function(ids, lengths), strict=True):
            found[index] = result, len(ids_of[index])
    return found


def contexts(ids: np.ndarray, lengths: np.ndarray) -> dict[str, np.ndarray]:
    """Which words of a batch follow the same words: what a model predicts there it predicts once.

    Args:
        ids: int32 (batch, time), sentences.
        lengths: int32 (batch,), how many of them count.

    Returns:
        Dictionary of `ids`; of `contexts`, int32 (batch, time - 1): for every id but the first, the
        number of the ids before it, the same where these are; and of `firsts`, int32 (N,): where in
        (batch * (time - 1),) each of them is read first. N is all of that, a half or a quarter, so
        that there are few shapes.

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.sentences import contexts
    >>> found = contexts(np.array([[0, 7, 8, 9], [0, 7, 6, 9]], "int32"), np.array([4, 4]))
    >>> found["contexts"].tolist(), found["firsts"].tolist()
    ([[0, 1, 2], [0, 1, 3]], [0, 1, 2, 5, 0, 0])
    """
    rows, time = ids.shape[0], ids.shape[1] - 1
    numbers = np.zeros((rows, time), "int32")  # behind the end of a sentence any will do
    known: dict[tuple[int | None, int], int] = {}
    firsts: list[int] = []
    for row, (sentence, length) in enumerate(zip(ids.tolist(), lengths.tolist(), strict=True)):
        context = None
        for place in range(length - 1):
            key = context, sentence[place]
            context = known.setdefault(key, len(firsts))
            if context == len(firsts):
                firsts.append(row * time + place)
            numbers[row, place] = context
    room = next(n for n in (-(-rows * time // part) for part in (4, 2, 1)) if n >= len(firsts))
    firsts += [0] * (room - len(firsts))
    return {"ids": ids, "contexts": numbers, "firsts": np.array(firsts, "int32")}


def chosen_gates(gate: str, gates: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the distances that an argument `gate` asks for.

    Args:
        gate: one of the names, or `"both"` where there are two.
        gates: tuple of names, those of all distances that a model measures.

    Returns:
        Tuple of names.

    Raises:
        ValueError: if it is none of them.

    Example:

    >>> from keras_onlstm.sentences import chosen_gates
    >>> chosen_gates("both", ("forget", "input"))
    ('forget', 'input')
    >>> chosen_gates("output", ("forget", "input"))
    Traceback (most recent call last):
    ...
    ValueError: gate is 'forget', 'input' or 'both', not 'output'.
    """
    if gate == "both" and len(gates) == 2:
        return tuple(gates)
    if gate not in gates:
        names = [repr(name) for name in (*gates, "both")[: 3 if len(gates) == 2 else len(gates)]]
        wanted = " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        raise ValueError(f"gate is {wanted}, not {gate!r}.")
    return (gate,)


class Reading(NamedTuple):
    """How trees are read off the distances of a model, unless one asks for another way.

    Attributes:
        layer: integer from 1 on, whose distances count; `None`: those of all layers.
        method: `"greedy"`, `"binary"` or `"votes"`.
    """

    layer: int | None
    method: str


def usual_reading(members: tuple[int, ...]) -> Reading:
    """`Reading` of models of ON-LSTM: of one the second layer, as in the paper, several vote.

    Args:
        members: tuple of how many layers each of them has.

    Returns:
        `Reading`.

    Example:

    >>> from keras_onlstm.sentences import usual_reading
    >>> usual_reading((3,)), usual_reading((3, 3)).method
    (Reading(layer=2, method='greedy'), 'votes')
    """
    return Reading(min(2, members[0]), "greedy") if len(members) == 1 else Reading(None, "votes")


class Measuring(Protocol):
    """What `Parser` wants of a model: of Keras, or exported.

    Attributes:
        vocabulary: list of words, or `None`.
        gates: tuple of the names of its distances.
        members: tuple of how many rows of distances each of the models has that it is made of.
    """

    vocabulary: list[str] | None
    gates: tuple[str, ...]
    members: tuple[int, ...]

    @property
    def reading(self) -> Reading:
        """How trees are read unless one asks for another way."""
        ...

    def distances(self, sentences: Iterable[Sentence], gate: str = "forget") -> list[np.ndarray]:
        """Arrays (rows, words), one for each sentence."""
        ...
