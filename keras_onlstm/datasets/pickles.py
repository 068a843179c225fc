"""Reads pickles of dictionaries of lists of tuples of strings. Runs no code in them."""

import io
import pickle
import pickletools
import re
from typing import Any

__all__ = ["read_lists"]

_STRINGS = "STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE"
_LETTERS = {
    **dict.fromkeys(_STRINGS.split(), "s"),
    **{"MARK": "(", "TUPLE": "t", "TUPLE2": "2", "TUPLE3": "3", "STOP": "."},
    **{"EMPTY_LIST": "]", "LIST": "l", "APPEND": "a", "APPENDS": "e"},
    **{"EMPTY_DICT": "}", "DICT": "d", "SETITEM": "i", "SETITEMS": "u"},
    **dict.fromkeys(("PROTO", "FRAME"), ""),
}
_REFERENCES = {"s": "s", "t": "p", "2": "p", "3": "p"}  # to strings and tuples, not to lists
# Grammar of the published files, with opcodes as letters.
_TUPLE = r"(?>ss2|sss3|\(sss?t|p)"
_LIST = rf"(?>\]|\(l)(?>{_TUPLE}a|\({_TUPLE}++e)*+"
_DICTIONARY = re.compile(rf"(?>\}}|\(d)(?>s{_LIST}i|\((?>s{_LIST})++u)*+\.")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} is not a string, tuple, list or dictionary")


def read_lists(data: bytes) -> dict[str, list[tuple[str, ...]]]:
    """Reads a dictionary. Raises ValueError or UnpicklingError for any other pickle."""
    letters, memo = "", dict[Any, str]()
    for opcode, argument, _ in pickletools.genops(data):
        if "PUT" in opcode.name or opcode.name == "MEMOIZE":
            index = len(memo) if argument is None else argument
            if index > len(memo) + 1:  # allocates all smaller indices
                raise ValueError(f"it has a memo entry {index} after {len(memo)} others")
            memo[index] = _REFERENCES.get(letters[-1:], "?")
        elif "GET" in opcode.name:
            letters += memo.get(argument, "?")
        elif opcode.name not in _LETTERS:
            raise ValueError(f"it has the opcode {opcode.name}, which no list of strings needs")
        else:
            letters += _LETTERS[opcode.name]
        if isinstance(argument, str):
            argument.encode()  # fails for lone surrogates
    if not _DICTIONARY.fullmatch(letters):
        raise ValueError("it is not a dictionary of lists of tuples of two or three strings")
    return _Unpickler(io.BytesIO(data), encoding="utf-8").load()
