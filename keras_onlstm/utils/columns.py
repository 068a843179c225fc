"""How wide texts are on a terminal."""

import unicodedata

__all__ = ["columns"]


def columns(text: str) -> int:
    """The columns that a terminal needs for a text.

    East Asian wide characters, emoji among them, take two; what is put onto other characters, and
    what nobody sees, takes none. Each character counts by itself, as most terminals have it.

    Args:
        text: without control characters.

    Returns:
        Integer.

    Source: Unicode Standard Annex 11, "East Asian Width", https://www.unicode.org/reports/tr11/.

    Example:

    >>> from keras_onlstm.utils.columns import columns
    >>> columns("cat"), columns("\\N{CJK UNIFIED IDEOGRAPH-732B}"), columns("e\\u0301")
    (3, 2, 1)
    """
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character):
    if unicodedata.category(character) in ("Mn", "Me", "Cf") and character != "\xad":
        return 0
    if "\u1160" <= character <= "\u11ff":  # second and third letters of a Korean syllable
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
