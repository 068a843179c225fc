"""One seed for all that a model draws."""

import zlib

import numpy as np

__all__ = ["derived"]


def derived(seed: int | None, *places: str | int) -> int | None:
    """A seed for one of the things that are drawn: equal seeds would draw equal numbers.

    Args:
        seed: integer from 0 on, or `None`.
        *places: what is drawn.

    Returns:
        Integer below 2**31, or `None` where there is no seed.

    Example:

    >>> from keras_onlstm.utils.seeds import derived
    >>> derived(0, "kernel") == derived(0, "kernel"), derived(0, "kernel") == derived(0, "bias")
    (True, False)
    """
    if seed is None:
        return None
    words = [seed, *(zlib.crc32(str(place).encode()) for place in places)]
    return int(np.random.SeedSequence(words).generate_state(1)[0]) >> 1
