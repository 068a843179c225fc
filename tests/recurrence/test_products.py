"""Products through oneDNN in PyTorch: those of plain multiplication, and where they are taken."""

import numpy as np
import pytest

from helpers import oracle
from helpers.fused import SINGLE, compare

pytestmark = pytest.mark.backend("torch")


@pytest.fixture
def through_onednn(monkeypatch):
    """Takes every product of float32 to oneDNN, however small; counts them."""
    from keras_onlstm.utils import backend_torch

    monkeypatch.setattr(backend_torch, "_ENTRIES", 0)
    monkeypatch.setattr(backend_torch, "_MULTIPLICATIONS", 0)
    calls = []
    given = backend_torch._onednn

    def counted(x, turned):
        calls.append(x.shape)
        return given(x, turned)

    monkeypatch.setattr(backend_torch, "_onednn", counted)
    return calls


def arrays(*shapes):
    import torch

    rng = np.random.default_rng(3)
    return [torch.tensor(rng.normal(size=shape), dtype=torch.float32) for shape in shapes]


def test_values(through_onednn):
    from keras_onlstm.utils.backend_torch import columns_of_steps, product, repeated

    x, matrix, added, inputs = arrays((3, 5), (7, 3), (7, 5), (2, 4, 7))
    wanted = (matrix.double() @ x.double()).numpy()
    for kept in (matrix, matrix.t().contiguous().t()):
        multiply = repeated(kept, 5)
        for given in (x, x.t().contiguous().t()):
            np.testing.assert_allclose(multiply(given), wanted, atol=1e-5)
            np.testing.assert_allclose(multiply(given, added), wanted + added.numpy(), atol=1e-5)
        np.testing.assert_allclose(product(kept, x), wanted, atol=1e-5)
    wanted = np.einsum("btk,kn->tnb", inputs.double(), matrix.double())
    np.testing.assert_allclose(columns_of_steps(inputs, matrix), wanted, atol=1e-5)
    assert len(through_onednn) == 11


def test_other_numbers_are_multiplied_as_ever(through_onednn):
    from keras_onlstm.utils.backend_torch import columns_of_steps, product, repeated

    x, matrix, inputs = (array.double() for array in arrays((3, 5), (7, 3), (2, 4, 7)))
    assert (repeated(matrix, 5)(x) == matrix @ x).all() and (product(matrix, x) == matrix @ x).all()
    assert columns_of_steps(inputs, matrix).shape == (4, 3, 2)
    assert not through_onednn
    assert columns_of_steps(inputs[:0].float(), matrix.float()).shape == (4, 3, 0)


@pytest.mark.parametrize("options", [{}, {"recurrent_dropout": 0.4, "seed": 3}])
def test_the_layer(through_onednn, options):
    """Values and every gradient are those of the readable recurrence."""
    problem = oracle.draw(12, 3, batch=3, time=6, input_dim=4)
    call = {"mask": oracle.masks(3, 6)["holes"]}
    compare(problem, 3, "float32", SINGLE, call=call, **options)
    assert len(through_onednn) == 2 * 6 + 4 + 6 + 1  # without gradients it ran once more
