"""Sentences as ids, and many of them read in batches of similar length. No Keras.

What models of Keras and exported graphs have in common.
"""

from collections import Counter

import numpy as np

from keras_onlstm.datasets.penn_treebank import EOS, UNKNOWN

__all__ = ["Encoder", "check_gate", "read"]

# So many sentences of a length are worth a shape of their own.
OFTEN = 512


class Encoder:
    """Finds the ids of words.

    Args:
        vocabulary: list of words; the place of a word is its id. Or `None`, which is refused.

    Raises:
        ValueError: if there is no vocabulary, or one without `<eos>` and `<unk>`.

    Example:

    >>> from keras_onlstm.sentences import Encoder
    >>> encoder = Encoder(["<eos>", "<unk>", "the", "cat"])
    >>> encoder("the black cat"), encoder.eos
    ([2, 1, 3], 0)
    """

    def __init__(self, vocabulary):
        if vocabulary is None or not {EOS, UNKNOWN} <= set(vocabulary):
            raise ValueError(
                f"The model has no vocabulary with {EOS} and {UNKNOWN}. Give it one when it is "
                "made: LanguageModel(..., vocabulary=words)."
            )
        self._places = {word: place for place, word in enumerate(vocabulary)}
        self.eos = self._places[EOS]

    def __call__(self, sentence):
        """The ids of a sentence: words apart by blanks, or a list of words."""
        words = sentence.split() if isinstance(sentence, str) else sentence
        unknown = self._places[UNKNOWN]
        return [self._places.get(word, unknown) for word in words]


def read(sentences, encoder, function, batch_size=32, multiple=1, closed=False):
    """What a function makes of sentences, which it gets in batches of similar length.

    A sentence is `<eos>` and its words, `closed` another `<eos>`. Behind it stands `<eos>` as well.

    Args:
        sentences: list of what `encoder` takes.
        encoder: `Encoder`.
        function: of ids, int32 (batch, time), and lengths, int32 (batch,), the `<eos>` counted.
            Returns one result a row.
        batch_size: integer, at most so many sentences at once.
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
    sentences = [encoder(sentence) for sentence in sentences]
    order = sorted(range(len(sentences)), key=lambda index: len(sentences[index]))
    many = Counter(map(len, sentences))
    found = [None] * len(sentences)
    for start in range(0, len(order), batch_size):
        group = order[start : start + batch_size]
        lengths = np.array([1 + len(sentences[index]) + closed for index in group], "int32")
        longest, time = len(sentences[group[-1]]), int(lengths[-1])
        # Empty sentences are always padded: a lone `<eos>` leaves nothing to predict.
        if not longest or many[longest] < OFTEN:
            time = -(-time // multiple) * multiple
        ids = np.full((len(group), time), encoder.eos, "int32")  # (B, T)
        for row, index in enumerate(group):
            ids[row, 1 : len(sentences[index]) + 1] = sentences[index]
        for index, result in zip(group, function(ids, lengths), strict=True):
            found[index] = result, len(sentences[index])
    return found


def check_gate(gate):
    """Refuses what is no master gate.

    Args:
        gate: `"forget"` or `"input"`.

    Raises:
        ValueError: if it is neither.

    Example:

    >>> from keras_onlstm.sentences import check_gate
    >>> check_gate("output")
    Traceback (most recent call last):
    ...
    ValueError: gate is 'forget' or 'input', not 'output'.
    """
    if gate not in ("forget", "input"):
        raise ValueError(f"gate is 'forget' or 'input', not {gate!r}.")
