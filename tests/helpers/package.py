"""Paths and modules of the package."""

from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
PACKAGE = ROOT / "keras_onlstm"
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def module_name(path):
    """The module name of a file; its path is relative to the package."""
    parts = ["keras_onlstm", *PurePosixPath(path).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
