"""What setup.cfg cannot say of a distribution: links that work away from the repository.

The README links its pictures and pages by their place in the repository. A package index shows the
same text with absolute links, all under `URL`.
"""

import re
from pathlib import Path

import setuptools

# Where the repository is published, in its one home; example.org stands for no place yet.
URL = "https://example.org/keras_onlstm"
PICTURES, PAGES = f"{URL}/raw/main", f"{URL}/blob/main"


def absolute(text):
    """Markdown whose relative links lead to the published repository."""

    def link(match):
        picture, shown, target = match.groups()
        return f"{picture}[{shown}]({PICTURES if picture else PAGES}/{target})"

    return re.sub(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)]+)\)", link, text)


if __name__ == "__main__":
    readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    setuptools.setup(
        url=URL,
        project_urls={
            "Documentation": f"{PAGES}/docs/index.md",
            "Changelog": f"{PAGES}/CHANGELOG.md",
            "Issues": f"{URL}/issues",
        },
        long_description=absolute(readme),
    )
