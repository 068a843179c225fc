"""Windows: every token once, in order, in few shapes."""

import numpy as np
import pytest

from keras_onlstm.training import Windows, contiguous

TEXT = np.arange(20_000)


@pytest.mark.parametrize("variable", [False, True])
def test_windows_cover_the_text_in_order(variable):
    assert contiguous(np.arange(11), 3).tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    windows = Windows(TEXT, 4, window=70, variable_bptt=variable)
    pieces = contiguous(TEXT, 4)
    inputs, targets = [], []
    for index in range(len(windows)):
        x, y, weights = windows[index]
        assert (x["rows"] == np.arange(4)).all()
        x, mask = x["ids"], x["mask"]
        assert x.shape == y.shape == mask.shape and (weights == mask).all()
        assert (mask.sum(1) == windows.length(index)).all() and mask[:, 0].all()
        assert not x[~mask].any() and not y[~mask].any()
        steps = windows.length(index)
        inputs.append(x[:, :steps])
        targets.append(y[:, :steps])
    assert (np.concatenate(inputs, 1) == pieces[:, :-1]).all()
    assert (np.concatenate(targets, 1) == pieces[:, 1:]).all()
    for index in (-1, len(windows)):
        with pytest.raises(IndexError, match=f"window {index} does not exist"):
            windows[index]


def test_window_lengths_follow_the_published_distribution():
    windows = Windows(np.arange(1_000_000), 1, window=70)
    lengths = np.array([windows.length(i) for i in range(len(windows) - 1)])
    long = lengths[lengths > 52]
    # About 14,000 draws: means to 0.05 deviations, shares to 0.006 at three standard errors.
    assert abs(len(long) / len(lengths) - 0.95) < 0.01
    assert abs(long.mean() - 69.5) < 0.3 and abs(long.std() - 5) < 0.3
    assert abs(lengths[lengths <= 52].mean() - 34.5) < 1.0
    shapes = {windows[i][1].shape[1] for i in range(len(windows))}
    assert shapes <= set(windows.padded_lengths) and len(shapes) == 4


def test_lengths_depend_on_seed_and_epoch():
    one, same, other = (Windows(TEXT, 4, seed=seed) for seed in (3, 3, 4))

    def lengths(windows, epoch):
        windows.set_epoch(epoch)
        return [windows.length(i) for i in range(len(windows))]

    first = lengths(one, 0)
    assert lengths(one, 1) != first and lengths(other, 0) != first
    assert lengths(one, 0) == first == lengths(same, 0)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"ids": TEXT[:7]}, "7 tokens are too few for a batch of 4"),
        ({"batch_size": 0}, "batch_size must be an integer, 1 or above, not 0"),
        ({"window": 5}, "window must be an integer, 10 or above, not 5"),
        ({"multiple": 0}, "multiple"),
    ],
)
def test_invalid_arguments_are_rejected(changes, match):
    with pytest.raises(ValueError, match=match):
        Windows(**{"ids": TEXT, "batch_size": 4, **changes})


def test_empty_rows_fill_a_batch():
    plain, filled = (Windows(np.arange(47), 5, 10, variable_bptt=False, multiple=n) for n in (1, 4))
    assert (plain.rows, filled.rows) == (5, 8) and len(plain) == len(filled)
    inputs, targets, weights = filled[0]
    assert inputs["rows"].tolist() == list(range(8))
    for array, other in zip(
        (inputs["ids"], inputs["mask"], targets, weights),
        (plain[0][0]["ids"], plain[0][0]["mask"], *plain[0][1:]),
        strict=True,
    ):
        assert (array[:5] == other).all() and not array[5:].any()


def test_windows_are_padded_to_the_next_of_four_lengths():
    windows = Windows(TEXT, 4, seed=1)
    for epoch in range(5):
        windows.set_epoch(epoch)
        for index, (_, targets, _) in enumerate(windows):
            size = next(n for n in windows.padded_lengths if n >= windows.length(index))
            assert targets.shape[1] == size, (epoch, index)


@pytest.mark.parametrize("variable", [False, True])
def test_on_epoch_end_keeps_the_number_of_windows(variable):
    """`keras.Model.fit` reads their number once."""
    windows, counts = Windows(TEXT, 4, variable_bptt=variable), []
    for epoch in range(20):
        windows.set_epoch(epoch)
        counts.append(len(windows))
    windows.set_epoch(0)
    windows.on_epoch_end()
    assert windows._epoch == counts.index(counts[0], 1)
    assert (len(set(counts)) > 1) == variable


@pytest.mark.parametrize("count", [2, 3])
def test_rows_of_processes_form_the_whole_batch(count):
    """Each process reads its own rows of the same windows, and knows the size of the batch."""
    whole = Windows(np.arange(400), 5, 20, multiple=6)
    shares = [Windows(np.arange(400), 5, 20, multiple=6, process=(k, count)) for k in range(count)]
    assert {len(share) for share in shares} == {len(whole)} and whole.rows == 6
    for index in range(len(whole)):
        inputs, *others = whole[index]
        parts = [share[index] for share in shares]
        assert [len(targets) for _, targets, _ in parts] == [6 // count] * count
        for name, array in inputs.items():
            assert (np.concatenate([part[0][name] for part in parts]) == array).all(), name
        for place, array in enumerate(others, 1):
            assert (np.concatenate([part[place] for part in parts]) == array).all()
        counts = {share.samples(index) for share in [whole, *shares]}
        assert counts == {others[1].sum()}
