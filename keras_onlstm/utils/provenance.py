"""What a result or an exported file depends on, for the record."""

import importlib.metadata
import platform

__all__ = ["versions"]


def versions(*further: str) -> dict[str, str]:
    """The versions of Python, of this package and of what it runs on.

    Args:
        *further: names of other distributions.

    Returns:
        Dictionary from names to versions, without what is not installed.
    """
    versions = {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }
    for name in ("keras-onlstm", "keras", "tensorflow", "jax", "torch", "numpy", *further):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
