"""Checks a built source distribution and wheel: python check_distribution.py DIR."""

import email
import re
import sys
import tarfile
import zipfile
from pathlib import Path

LARGEST = 20e6  # bytes of a wheel
NO_PLACE = "https://example.org/"
DATA = {"keras_onlstm/trained/parser.npz", "keras_onlstm/py.typed"}


def check(directory):
    """Returns a list of error messages."""
    (wheel,), (source,) = directory.glob("*.whl"), directory.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        about = email.message_from_bytes(archive.read(metadata))
    with tarfile.open(source) as archive:
        members = {name.partition("/")[2] for name in archive.getnames()}
    changes = Path(__file__).parents[1].joinpath("CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(.+)\] - \d{4}-\d\d-\d\d$", changes, re.MULTILINE)
    if wheel.stat().st_size > LARGEST:
        yield f"{wheel.name} has {wheel.stat().st_size:,} bytes, more than {LARGEST:,.0f}"
    for name in names:
        if not re.match(r"keras_onlstm(/|-[^/]*\.dist-info/)", name):
            yield f"{wheel.name} installs {name}"
    package = {name for name in names if name.startswith("keras_onlstm/")}
    yield from (f"{wheel.name} lacks {name}" for name in DATA - package)
    yield from (
        f"{source.name} lacks {name}" for name in {"README.md", "LICENSE", *package} - members
    )
    if about["Version"] not in versions[:1]:
        yield f"the version is {about['Version']}, and CHANGELOG.md dates {versions[:1]}"
    if NO_PLACE in about["Home-page"]:
        print(f"note: {NO_PLACE} is a placeholder; set url in setup.cfg before this is published")


if __name__ == "__main__":
    wrong = list(check(Path(sys.argv[1])))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    sys.exit(bool(wrong))
