"""Training steps of TreeLSTM on random trees: planning, dropout, softmax, clipping, Adam.

The trees are generated, so the benchmark needs no data. Their lengths are 16 quantiles of the
lengths in NLTK's dependency treebank; the largest is raised so that the mean is 24. Dependents are
drawn from the root down with the frequencies of the treebank. The 64 random trees are similar to
the 3,913 trees of the treebank with up to 150 words:

    | | random | treebank |
    |---|---|---|
    | LEFT, RIGHT | 29.5%, 37.2% | 28.3%, 37.5% |
    | NX-LEFT, NX-RIGHT | 21.0%, 12.3% | 20.6%, 13.6% |
    | longest path: mean, maximum | 11.1, 20 | 10.8, 35 |
    | words whose left dependents are read first | 15.3% | 14.5% |
    | left dependents that are read per word | 0.26 | 0.26 |
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
# Probabilities, estimated on the treebank: that a word has a left dependent; that it has a right
# one, without and with a left one; that a left, or right, dependent is followed by another one.
LEFT, RIGHT = 0.283, (0.26, 0.51)
NEXT_LEFT, NEXT_RIGHT = 0.42, 0.29
# The recipe of `examples/dependency_language_model.py --preset small` at a fixed learning rate.
DROPOUTS = {"input_dropout": 0.4, "dropout": 0.5}
LEARNING_RATE, CLIPNORM = 8e-3, 5.0
# Chains share 32 rows, the fastest number from 16 to 64 on TensorFlow and PyTorch.
CHAIN_CAPACITY = RowCapacity(0, 32, 0, 0, 0)


def draw_heads(generator, maximum):
    """Draws the heads of a random tree; returns `None` if it has more than `maximum` words."""

    def draw_count(probability, probability_of_next):
        count = 0
        while generator.random() < probability:
            count, probability = count + 1, probability_of_next
        return count

    # Words are numbered in the order of drawing. `order` has their order in the sentence.
    parents, order, pending = [None], [], [(0, False)]
    while pending:
        word, has_dependents = pending.pop()
        if has_dependents:  # its left dependents are in `order` already
            order.append(word)
            continue
        start = len(parents)
        left = draw_count(LEFT, NEXT_LEFT)
        right = draw_count(RIGHT[left > 0], NEXT_RIGHT)
        parents += [word] * (left + right)
        if len(parents) > maximum:
            return None
        dependents = [(dependent, False) for dependent in range(start, len(parents))]
        pending += [*dependents[:left], (word, True), *dependents[left:]][::-1]
    positions = {None: 0, **{word: position for position, word in enumerate(order, 1)}}
    return [positions[parents[word]] for word in order]


def draw_trees(configuration, vocabulary, seed=0):
    """Draws a batch of random trees. The frequencies of words follow Zipf's law."""
    generator = random.Random(seed)
    repeats, rest = divmod(configuration.batch, len(LENGTHS))
    assert not rest and sum(LENGTHS) == configuration.time * len(LENGTHS)
    missing = Counter(LENGTHS * repeats)
    words = vocabulary[2:]
    frequencies = list(itertools.accumulate(1 / rank for rank in range(1, len(words) + 1)))
    trees = []
    while len(trees) < configuration.batch:
        heads = draw_heads(generator, max(LENGTHS))
        if heads is None or not missing[len(heads)]:
            continue
        missing[len(heads)] -= 1
        sentence = generator.choices(words, cum_weights=frequencies, k=len(heads))
        trees.append(DependencyTree(sentence, heads))
    return trees


def functions(name, configuration, dtype):
    """Functions to time: `train`, a training step with its planning, and `planning` only."""
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
    trees = draw_trees(configuration, vocabulary)
    schedules = [model.schedule_tree(chain(tree.words) if sequential else tree) for tree in trees]
    capacity = CHAIN_CAPACITY if sequential else None
    batches = TreeBatches(model, schedules, configuration.batch, capacity=capacity)
    learner = TreeLearner(model)
    optimizer = keras.optimizers.Adam(LEARNING_RATE, global_clipnorm=CLIPNORM)
    learner.compile(optimizer)  # Keras decides whether to compile, as in training
    optimizer.build(learner.trainable_variables)
    return {"train": lambda: learner.train_on_batch(*batches[0]), "planning": lambda: batches[0]}
