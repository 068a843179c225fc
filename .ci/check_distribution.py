"""Checks a built source distribution and wheel: python check_distribution.py DIR."""

import email
import re
import sys
import tarfile
import zipfile
from pathlib import Path

LARGEST = 20e6  # bytes of a wheel
NO_PLACE = "https://example.org/"
HAS = ("README.md", "CHANGELOG.md", "docs/index.md", "docs/images/parsed.svg", "docs/gallery.json")
HAS += ("examples/language_modeling.py", "keras_onlstm/trained/parser.npz", "tests/oracle.py")


def check(directory):
    """What is wrong: messages."""
    (wheel,), (source,) = directory.glob("*.whl"), directory.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        about = email.message_from_bytes(archive.read(metadata))
    with tarfile.open(source) as archive:
        members = {name.partition("/")[2] for name in archive.getnames()}
        changes = archive.extractfile(f"{source.name.removesuffix('.tar.gz')}/CHANGELOG.md")
        versions = re.findall(r"^## \[(.+)\] - \d{4}-\d\d-\d\d$", changes.read().decode(), re.M)
    if wheel.stat().st_size > LARGEST:
        yield f"{wheel.name} has {wheel.stat().st_size:,} bytes, more than {LARGEST:,.0f}"
    for name in names:
        if not re.match(r"keras_onlstm(/|-[^/]*\.dist-info/)", name):
            yield f"{wheel.name} installs {name}"
    if "keras_onlstm/trained/parser.npz" not in names or "keras_onlstm/py.typed" not in names:
        yield f"{wheel.name} lacks files of the package that are no code"
    yield from (f"{source.name} lacks {name}" for name in HAS if name not in members)
    if about["Author"] != "keras_onlstm contributors":
        yield f"the author is {about['Author']}"
    urls = dict(url.split(", ") for url in about.get_all("Project-URL", []))
    for name in ("Homepage", "Documentation", "Changelog", "Issues"):
        if not urls.get(name, about["Home-page"] if name == "Homepage" else None):
            yield f"there is no URL of {name}"
    text = about.get_payload()
    for link in re.findall(r"\]\(([^)]+)\)", text):
        if not re.match(r"https://|#", link):
            yield f"the description links {link}, which an index cannot show"
    if "![" not in text:
        yield "the description has lost its picture"
    if about["Version"] not in versions[:1]:
        yield f"the version is {about['Version']}, and CHANGELOG.md dates {versions[:1]}"
    if NO_PLACE in text:
        print(f"note: links lead to {NO_PLACE}; set URL in setup.py before this is published")


if __name__ == "__main__":
    wrong = list(check(Path(sys.argv[1])))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    sys.exit(bool(wrong))
