"""Training steps of TreeLSTM on random trees: planning, dropouts, softmax, clipping, Adam.

The trees are drawn, not read, so they are the same everywhere. Their lengths are 16 quantiles of
those of NLTK's dependency treebank, the largest raised to a mean of 24. Dependents are drawn from
the root down, with frequencies of the treebank. The 64 trees, and its 3,913 of up to 150 words:

    | | drawn | treebank |
    |---|---|---|
    | LEFT, RIGHT | 29.5%, 37.2% | 28.3%, 37.5% |
    | NX-LEFT, NX-RIGHT | 21.0%, 12.3% | 20.6%, 13.6% |
    | longest path: mean, largest | 11.1, 20 | 10.8, 35 |
    | words before which left dependents are read | 15.3% | 14.5% |
    | left dependents read, for a word | 0.26 | 0.26 |
"""

import itertools
import random
from collections import Counter

import keras
from configurations import LEFT_DEPENDENTS, SEQUENTIAL

from keras_onlstm.dependencies import DependencyTree, chain
from keras_onlstm.models import TreeLSTM
from keras_onlstm.text.vocabulary import ROOT, UNKNOWN
from keras_onlstm.training import TreeBatches, TreeLearner
from keras_onlstm.tree_lstm.schedule import RowCapacity

LENGTHS = [6, 10, 13, 15, 17, 19, 20, 22, 24, 26, 27, 30, 32, 35, 38, 50]  # mean 24
# Probability that a word has a dependent on its left; on its right, without and with a left one;
# and that a dependent on the left, or right, is followed by another. Estimated on the treebank.
LEFT, RIGHT = 0.283, (0.26, 0.51)
NEXT_LEFT, NEXT_RIGHT = 0.42, 0.29
# The recipe of `examples/dependency_language_model.py --preset small`, at one learning rate.
DROPOUTS = {"input_dropout": 0.4, "dropout": 0.5}
RATE, CLIP = 8e-3, 5.0
# Chains share 32 rows, the fastest number from 16 to 64 on TensorFlow and PyTorch.
CHAIN_CAPACITY = RowCapacity(0, 32, 0, 0, 0)


def drawn_heads(generator, most):
    """Draws the heads of a tree's words; `None` if it has more than `most` words."""

    def dependents(chance, following):
        count = 0
        while generator.random() < chance:
            count, chance = count + 1, following
        return count

    above, order, pending = [None], [], [(0, False)]  # words in the order in which they are drawn
    while pending:
        word, is_open = pending.pop()
        if is_open:  # all words on its left are in order
            order.append(word)
            continue
        start = len(above)
        left = dependents(LEFT, NEXT_LEFT)
        right = dependents(RIGHT[left > 0], NEXT_RIGHT)
        above += [word] * (left + right)
        if len(above) > most:
            return None
        drawn = [(dependent, False) for dependent in range(start, len(above))]
        pending += [*drawn[:left], (word, True), *drawn[left:]][::-1]
    places = {None: 0, **{word: place for place, word in enumerate(order, 1)}}
    return [places[above[word]] for word in order]


def drawn_trees(configuration, vocabulary, seed=0):
    """A batch of random trees. The frequencies of words follow Zipf's law."""
    generator = random.Random(seed)
    repeats, rest = divmod(configuration.batch, len(LENGTHS))
    assert not rest and sum(LENGTHS) == configuration.time * len(LENGTHS)
    wanted = Counter(LENGTHS * repeats)
    words = vocabulary[2:]
    frequencies = list(itertools.accumulate(1 / rank for rank in range(1, len(words) + 1)))
    trees = []
    while len(trees) < configuration.batch:
        heads = drawn_heads(generator, max(LENGTHS))
        if heads is None or not wanted[len(heads)]:
            continue
        wanted[len(heads)] -= 1
        chosen = generator.choices(words, cum_weights=frequencies, k=len(heads))
        trees.append(DependencyTree(chosen, heads))
    return trees


def functions(name, configuration, dtype):
    """Functions to time: `train`, a step including its planning, and `planning` only."""
    vocabulary = [UNKNOWN, ROOT, *(f"word-{n}" for n in range(2, configuration.vocabulary))]
    sequential = name == SEQUENTIAL
    model = TreeLSTM(
        configuration.vocabulary,
        configuration.input_dim,
        *configuration.units,
        left_dependents=name == LEFT_DEPENDENTS,
        sequential=sequential,
        vocabulary=vocabulary,
        seed=0,
        dtype="float32" if dtype == "float32" else f"mixed_{dtype}",
        **DROPOUTS,
    )
    model.build()
    trees = drawn_trees(configuration, vocabulary)
    schedules = [model.schedule_tree(chain(tree.words) if sequential else tree) for tree in trees]
    capacity = CHAIN_CAPACITY if sequential else None
    batches = TreeBatches(model, schedules, configuration.batch, capacity=capacity)
    learner = TreeLearner(model)
    optimizer = keras.optimizers.Adam(RATE, global_clipnorm=CLIP)
    learner.compile(optimizer)  # as in training: Keras decides whether to compile
    optimizer.build(learner.trainable_variables)
    return {
        "train": lambda: learner.train_on_batch(*batches[0]),
        "planning": lambda: batches[0],
    }
