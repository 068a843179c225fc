"""Products through oneDNN in PyTorch: those of plain multiplication, and where they are taken."""

import numpy as np
import pytest

from helpers import oracle
from helpers.fused import SINGLE, compare

pytestmark = pytest.mark.backend("torch")


@pytest.fixture
def onednn_calls(monkeypatch):
    """Hands every product of float32 to oneDNN, however small; counts them."""
    from keras_onlstm.recurrence import engine_torch

    monkeypatch.setattr(engine_torch, "_ENTRIES", 0)
    monkeypatch.setattr(engine_torch, "_MULTIPLICATIONS", 0)
    calls, linear = [], engine_torch._linear

    def counted(x, matrix):
        calls.append(x.shape)
        return linear(x, matrix)

    monkeypatch.setattr(engine_torch, "_linear", counted)
    return calls


def arrays(*shapes):
    import torch

    rng = np.random.default_rng(3)
    return [torch.tensor(rng.normal(size=shape), dtype=torch.float32) for shape in shapes]


def test_products_match_plain_multiplication(onednn_calls):
    from keras_onlstm.recurrence.engine import packed, product, rows_product, summed_product

    matrix, x, rows, others = arrays((7, 3), (3, 5), (2, 4, 7), (2, 4, 6))
    expected = (matrix.double() @ x.double()).numpy()
    for kernel in (matrix, matrix.t().contiguous().t()):
        for columns in (x, x.t().contiguous().t()):
            np.testing.assert_allclose(product(packed(kernel, 5), columns), expected, atol=1e-5)
        expected_rows = np.einsum("tbk,kn->tbn", rows.double(), matrix.double())
        np.testing.assert_allclose(rows_product(rows, kernel), expected_rows, atol=1e-5)
    expected = np.einsum("tbm,tbn->mn", rows.double(), others.double())
    np.testing.assert_allclose(summed_product(rows, others), expected, atol=1e-5)
    assert len(onednn_calls) == 7


def test_float64_and_empty_products_do_not_use_onednn(onednn_calls):
    from keras_onlstm.recurrence.engine import packed, product, rows_product

    matrix, x, rows = (array.double() for array in arrays((7, 3), (3, 5), (2, 4, 7)))
    assert (product(packed(matrix, 5), x) == matrix @ x).all()
    assert rows_product(rows, matrix).shape == (2, 4, 3)
    assert not onednn_calls
    assert rows_product(rows[:0].float(), matrix.float()).shape == (0, 4, 3)


@pytest.mark.parametrize("options", [{}, {"recurrent_dropout": 0.4, "seed": 3}])
def test_the_layer(onednn_calls, options):
    """Values and every gradient are those of the readable recurrence."""
    problem = oracle.draw(12, 3, batch=3, time=6, input_dim=4)
    call = {"mask": oracle.masks(3, 6)["holes"]}
    compare(problem, 3, "float32", SINGLE, call=call, **options)
    # Two forward passes with gradients or without, one backward pass: six steps and one product of
    # all inputs each forward, six steps and three products backward.
    assert len(onednn_calls) == 2 * (6 + 1) + 6 + 3
