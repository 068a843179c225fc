"""Batches of pairs: each pair once an epoch, in an order of seed and epoch, with little padding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_onlstm.datasets import propositional_logic as logic
from keras_onlstm.training import PairBatches


def make_pairs(lengths):
    """Pairs of the given lengths; pair i is of class i, and its ids tell it from all others."""
    left = [[1 + 100 * i + t for t in range(n)] for i, (n, _) in enumerate(lengths)]
    right = [[51 + 100 * i + t for t in range(m)] for i, (_, m) in enumerate(lengths)]
    return left, right, list(range(len(lengths)))


def random_pairs(count=83, longest=17, seed=3):
    lengths = np.random.default_rng(seed).integers(1, longest + 1, (count, 2))
    return make_pairs(lengths.tolist())


def everything(batches):
    return [batches[i] for i in range(len(batches))]


def assert_same(ours, others):
    assert len(ours) == len(others)
    for ((left, right), classes), ((a, b), c) in zip(ours, others, strict=True):
        np.testing.assert_array_equal(left, a)
        np.testing.assert_array_equal(right, b)
        np.testing.assert_array_equal(classes, c)


@given(
    lengths=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=60),
    batch_size=st.integers(1, 20),
    multiple=st.integers(1, 12),
    shuffle=st.booleans(),
    seed=st.integers(0, 5),
    epoch=st.integers(0, 5),
)
def test_epoch_contains_every_pair_once(lengths, batch_size, multiple, shuffle, seed, epoch):
    left, right, classes = make_pairs(lengths)
    batches = PairBatches(left, right, classes, batch_size, multiple, shuffle, seed)
    batches.set_epoch(epoch)
    seen = []
    for (a, b), targets in everything(batches):
        assert a.dtype == b.dtype == targets.dtype == "int32"
        for ids, sequences in ((a, left), (b, right)):
            assert len(ids) == len(targets)
            assert (ids.shape[1] - 1) % multiple == 0, "not 1 + k * multiple"
            longest = max(len(sequences[pair]) for pair in targets)
            assert longest <= ids.shape[1] < longest + multiple, "too narrow, or too wide"
            for row, pair in zip(ids.tolist(), targets, strict=True):
                padding = [0] * (len(row) - len(sequences[pair]))
                assert row == sequences[pair] + padding
        seen += targets.tolist()
    assert sorted(seen) == classes
    sizes = sorted(len(targets) for _, targets in everything(batches))
    assert len(sizes) == -(-len(classes) // batch_size)
    assert sizes[1:] == [batch_size] * (len(sizes) - 1), "more than one batch is not full"


def test_without_shuffling_batches_are_sorted_by_length():
    batches = PairBatches(*random_pairs(), batch_size=8)
    first = everything(batches)
    batches.set_epoch(4)
    assert_same(everything(batches), first)
    widths = [left.shape[1] for (left, _), _ in first]
    assert widths == sorted(widths)
    assert len(first[-1][1]) == 83 % 8  # the one batch that is not full is the last


def test_order_depends_only_on_seed_and_epoch():
    pairs = random_pairs()
    batches = PairBatches(*pairs, batch_size=8, shuffle=True, seed=5)
    orders = [everything(batches)]
    for epoch in (1, 2, 3):
        batches.set_epoch(epoch)
        orders.append(everything(batches))
    for epoch in (2, 0, 3, 3):  # entered again in any order, after any other epoch
        batches.set_epoch(epoch)
        assert_same(everything(batches), orders[epoch])
    again = PairBatches(*pairs, batch_size=8, shuffle=True, seed=5)
    again.set_epoch(2)
    assert_same([again[i] for i in (3, 9, 0)], [orders[2][i] for i in (3, 9, 0)])


def test_epochs_and_seeds_differ_in_batches_and_order():
    orders = {}
    for seed in range(2):
        batches = PairBatches(*random_pairs(), batch_size=8, shuffle=True, seed=seed)
        for epoch in range(3):
            batches.set_epoch(epoch)
            orders[seed, epoch] = [tuple(classes.tolist()) for _, classes in everything(batches)]
    assert len({tuple(order) for order in orders.values()}) == len(orders)
    # Not only the order of batches changes: pairs of equal length are exchanged.
    kept = set(map(frozenset, orders[0, 0])) & set(map(frozenset, orders[0, 1]))
    assert len(kept) < len(orders[0, 0])
    widths = [left.shape[1] for (left, _), _ in everything(batches)]
    assert widths != sorted(widths), "batches come in order of length"


def test_right_lengths_alternately_rise_and_fall():
    # Sorted by left, right falling or rising: (1, 2) and (1, 4), then only (3, 1).
    batches = PairBatches([[1], [1, 2, 3], [4]], [[5, 6], [7], [1, 2, 3, 4]], [0, 1, 2], 2)
    assert [[a.shape, b.shape] for (a, b), _ in everything(batches)] == [
        [(2, 1), (2, 4)], [(1, 3), (1, 1)],
    ]  # fmt: skip


@pytest.mark.parametrize("multiple", [1, 3, 12])
def test_padding_share_is_the_share_of_zeros(multiple):
    batches = PairBatches(*random_pairs(), batch_size=8, multiple=multiple, shuffle=True)
    batches.set_epoch(1)
    ids = np.concatenate([side.ravel() for sides, _ in everything(batches) for side in sides])
    assert batches.padding_share() == pytest.approx((ids == 0).mean(), abs=1e-12)


def test_empty_sequence_is_one_padding_position():
    batches = PairBatches([[], [1, 2]], [[3], []], [0, 1], batch_size=1)
    (left, right), _ = batches[0]
    assert left.tolist() == [[0]] and right.tolist() == [[3]]
    assert batches.padding_share() == pytest.approx(1 - 3 / 5)


def test_published_data_needs_little_padding(shared_data):
    training, _ = logic.load(shared_data / "propositionallogic").split(6)
    sides = (
        [logic.encode(pair.left) for pair in training],
        [logic.encode(pair.right) for pair in training],
    )
    classes = [logic.LABELS.index(pair.label) for pair in training]
    fine = PairBatches(*sides, classes, batch_size=128, multiple=3, shuffle=True)
    assert len(fine) == 953
    assert fine.padding_share() < 0.02
    coarse = PairBatches(*sides, classes, batch_size=128, multiple=12, shuffle=True)
    shapes = {(len(c), a.shape[1], b.shape[1]) for (a, b), c in everything(coarse)}
    assert len(shapes) <= 20


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"left": [], "right": [], "classes": []}, "0, 0 and 0"),
        ({"right": [[1], [2]]}, "1, 2 and 1"),
        ({"right": [[4, 0, 5]]}, "pair 0.*0.*padding"),
        ({"batch_size": 0}, "batch_size.*0"),
    ],
)
def test_invalid_arguments_are_rejected(changes, match):
    with pytest.raises(ValueError, match=match):
        PairBatches(**{"left": [[1]], "right": [[2]], "classes": [0], "batch_size": 2, **changes})
