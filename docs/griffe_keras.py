"""Lets the API page render docstrings in Keras' style, whose sections the Google style lacks."""

import re

import griffe

EXAMPLE = re.compile(r"^Examples?:\s*\n((?:[ \t]*\n)*)((?:    .*\n?|[ \t]*\n)*)", re.MULTILINE)
CALL_ARGUMENTS = re.compile(r"^Call arguments:[ \t]*$", re.MULTILINE)
DOCTEST = re.compile(r"^( *)>>> .*(?:\n\1.*\S.*)*", re.MULTILINE)


def render(text):
    """A docstring with titles that the Google style knows, and its doctests fenced."""
    text = EXAMPLE.sub(lambda found: "**Example**\n\n" + dedent(found[2]), text)
    text = CALL_ARGUMENTS.sub("Other Parameters: Call arguments:", text)
    return DOCTEST.sub(r"\1```pycon\n\g<0>\n\1```", text)


def dedent(block):
    return re.sub(r"^    ", "", block, flags=re.MULTILINE)


class KerasSections(griffe.Extension):
    """Rewrites every docstring of the package as it is collected."""

    def on_object(self, *, obj, **kwargs):
        if obj.docstring:
            obj.docstring.value = render(obj.docstring.value)
