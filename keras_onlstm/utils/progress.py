"""Progress bars of tqdm with the same options."""

from typing import Any

__all__ = ["advance", "progress_bar"]


def progress_bar(unit: str, **options: Any) -> Any:
    """A progress bar with rate and time left, shown only on a terminal.

    Args:
        unit: what is counted, in the plural.
        **options: of `tqdm.tqdm`, such as `total` and `desc`. The bar appears after `delay`
            seconds, 3 by default.

    Returns:
        `tqdm.tqdm`.
    """
    from tqdm import tqdm

    defaults = {"disable": None, "dynamic_ncols": True, "unit_scale": True, "delay": 3}
    return tqdm(unit=f" {unit}", **(defaults | options))


def advance(bar: Any, done: int, total: int | None = None) -> None:
    """Sets how much is done, and of how much, if known."""
    bar.total = total
    bar.update(done - bar.n)
