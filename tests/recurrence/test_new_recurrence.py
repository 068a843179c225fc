"""The recurrence that docs/recurrence.md shows has the gradients of a plain loop."""

import re

import numpy as np
from keras import ops

from helpers.checks import SINGLE, assert_all_close, gradients
from helpers.package import ROOT
from keras_onlstm.recurrence.engine import run


def test_gradients_of_the_example():
    text = (ROOT / "docs/recurrence.md").read_text(encoding="utf-8")
    _, text = text.split("## Add a recurrence")
    (example,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    names = {"__name__": "docs.recurrence"}
    exec(example, names)
    step = names["TanhStep"]()

    def by_engine(kernel, h, x):
        (h,), (rows,) = run(step, (kernel,), (h,), (x,), True)
        return ops.sum(h**2) + ops.sum(rows**3)

    def by_loop(kernel, h, x):
        total = 0.0
        for row in ops.unstack(x, 5):
            h = ops.tanh(row + h @ kernel)
            total = total + ops.sum(h**3)
        return total + ops.sum(h**2)

    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype("float32") for shape in ((3, 3), (2, 3), (5, 2, 3))]
    found, expected = gradients(by_engine, arrays), gradients(by_loop, arrays)
    assert all(np.abs(gradient).max() > 0.1 for gradient in expected)
    assert_all_close(found, expected, SINGLE, ("kernel", "h", "x"))
