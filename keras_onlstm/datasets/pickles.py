"""Reading pickles of lists of tuples of strings, and of nothing else.

A pickle is a program: it may call anything, and a few bytes that refer to one another may stand for
more values than memory holds. Here its instructions are read one by one, and none is carried out
but those that make strings, tuples of strings, lists of such tuples, and dictionaries of such lists
under strings. No class is ever looked for, nothing lies deeper than that, and what may be referred
to again are strings and tuples alone: so what is read is no larger than a multiple of the file.
"""

import pickletools

__all__ = ["read_lists"]

MOST_VALUES = 2**21  # of a file, each of which may take as many bytes as the longest one
_MARK = object()
_TEXTS = ("STRING", "BINSTRING", "SHORT_BINSTRING")  # of Python 2, whose bytes are UTF-8 here
_PUTS = ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE")


def _is_texts(values):
    return all(type(value) is str for value in values)


class _Machine:
    """The stack of values that the instructions of a pickle work on."""

    def __init__(self):
        self.stack = []
        self.memo = {}
        self.values = 0

    def pop(self):
        if not self.stack or self.stack[-1] is _MARK:
            raise ValueError("an instruction lacks its value")
        return self.stack.pop()

    def pop_to_mark(self):
        items = []
        while self.stack and self.stack[-1] is not _MARK:
            items.append(self.stack.pop())
        if not self.stack:
            raise ValueError("an instruction lacks its mark")
        self.stack.pop()
        return items[::-1]

    def push(self, value):
        self.values += 1
        if self.values > MOST_VALUES:
            raise ValueError(f"it has more than {MOST_VALUES:,} values")
        self.stack.append(value)

    def put(self, place):
        value = self.stack[-1] if self.stack else _MARK
        self.memo[len(self.memo) if place is None else place] = value

    def get(self, place):
        value = self.memo.get(place)
        if type(value) not in (str, tuple):
            raise ValueError(f"it refers to number {place}, which is no string or tuple")
        self.push(value)

    def text(self, value, is_old):
        if is_old:
            value = value.encode("latin-1").decode("utf-8")
        value.encode()  # half of a pair of surrogates is no text
        self.push(value)

    def tuple(self, values):
        if not _is_texts(values):
            raise ValueError("it has a tuple of something else than strings")
        self.push(tuple(values))

    def append(self, values):
        items = self.stack[-1] if self.stack else None
        if type(items) is not list or not all(type(value) is tuple for value in values):
            raise ValueError("it has a list of something else than tuples")
        items += values

    def set_items(self, values):
        pairs = self.stack[-1] if self.stack else None
        names, lists = values[::2], values[1::2]
        if type(pairs) is not dict or len(names) != len(lists) or not _is_texts(names):
            raise ValueError("it has a dictionary of something else than lists under names")
        if not all(type(value) is list for value in lists):
            raise ValueError(f"what it has under {names[-1]!r} is no list of tuples")
        pairs.update(zip(names, lists, strict=True))

    def run(self, name, argument):
        """Carries out an instruction; `False` if it is one that this machine does not have."""
        if name in ("PROTO", "FRAME"):
            pass
        elif name == "MARK":
            self.push(_MARK)
        elif name in _PUTS:
            self.put(argument)
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            self.get(argument)
        elif name in (*_TEXTS, "UNICODE", "BINUNICODE", "SHORT_BINUNICODE"):
            self.text(argument, name in _TEXTS)
        elif name in ("EMPTY_TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"):
            count = 0 if name == "EMPTY_TUPLE" else int(name[-1])
            self.tuple([self.pop() for _ in range(count)][::-1])
        elif name == "TUPLE":
            self.tuple(self.pop_to_mark())
        elif name in ("EMPTY_LIST", "LIST"):
            values = self.pop_to_mark() if name == "LIST" else []
            self.push([])
            self.append(values)
        elif name in ("EMPTY_DICT", "DICT"):
            values = self.pop_to_mark() if name == "DICT" else []
            self.push({})
            self.set_items(values)
        elif name in ("APPEND", "APPENDS"):
            self.append([self.pop()] if name == "APPEND" else self.pop_to_mark())
        elif name in ("SETITEM", "SETITEMS"):
            alone = name == "SETITEM"
            self.set_items([self.pop(), self.pop()][::-1] if alone else self.pop_to_mark())
        else:
            return False
        return True


def read_lists(data: bytes) -> dict | list | tuple | str:
    """What a pickle holds.

    Args:
        data: bytes.

    Returns:
        A dictionary from strings to lists of tuples of strings; or one of these lists, tuples or
        strings, if the pickle holds nothing else.

    Raises:
        ValueError: if it is incomplete, or holds or does anything else.

    Example:

    >>> import pickle
    >>> from keras_onlstm.datasets.pickles import read_lists
    >>> read_lists(pickle.dumps({"plural": [("two cats", "two cat")]}))
    {'plural': [('two cats', 'two cat')]}
    >>> read_lists(pickle.dumps(print))
    Traceback (most recent call last):
    ...
    ValueError: it has the instruction STACK_GLOBAL, which no list of strings needs
    """
    machine = _Machine()
    for instruction, argument, _ in pickletools.genops(data):
        if instruction.name == "STOP":
            break
        if not machine.run(instruction.name, argument):
            raise ValueError(
                f"it has the instruction {instruction.name}, which no list of strings needs"
            )
    value = machine.pop()
    if machine.stack:
        raise ValueError("it leaves values behind")
    return value
