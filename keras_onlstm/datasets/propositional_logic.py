"""Logical inference: pairs of propositional statements and the relation between them.

The task of Bowman et al. (2015, https://arxiv.org/abs/1506.04834), on which ordered neurons are
tested for how well they generalise to statements longer than those seen in training. A statement
over the six variables `a` to `f` is fully bracketed, its tokens separated by spaces:

    X  =  a | ... | f  |  ( not X )  |  ( X ( and X ) )  |  ( X ( or X ) )

A statement denotes the set of worlds (truth assignments of the six variables) in which it is true.
There are 64 worlds, so the set is an integer of 64 bits, and every connective a bitwise operation.
"""

import functools
import itertools
import random
import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from keras_onlstm.utils import StrPath
from keras_onlstm.utils.files import lines
from keras_onlstm.utils.validation import check_integer

__all__ = [
    "LABELS", "TOKENS", "VARIABLES", "Corpus", "Pair",
    "count_operators", "encode", "generate", "load", "relation", "save",
]  # fmt: skip

LABELS = "=<>^|v#"
VARIABLES = "abcdef"
TOKENS = ("(", ")", "and", "or", "not", *VARIABLES)

_IDS = {token: index for index, token in enumerate(TOKENS, start=1)}
_ALL_WORLDS = (1 << 64) - 1
# Variable k is true in those worlds whose number has bit k set.
_WORLDS = {
    name: sum(1 << world for world in range(64) if world >> k & 1)
    for k, name in enumerate(VARIABLES)
}
_BUCKETS = range(13)  # the last one holds the pairs with 12 operators or more
_SOURCE = "data/propositionallogic/ of https://github.com/yikangshen/Ordered-Memory"
_GRAMMAR = "A statement is a variable (a to f), ( not X ), ( X ( and X ) ) or ( X ( or X ) )."


class Pair(NamedTuple):
    """Two bracketed statements, and the relation of the first to the second, one of `LABELS`."""

    label: str
    left: str
    right: str


@dataclass(frozen=True)
class Corpus:
    """Training and test pairs, by the number of operators of the statement with more of them.

    The numbers are 0 to 12; 12 means 12 or more.

    >>> pair = Pair("=", "a", "a")
    >>> Corpus({0: [pair, pair]}, {}).split(every=2) == ([pair], [pair])
    True
    """

    train: dict[int, list[Pair]]
    test: dict[int, list[Pair]]

    def split(self, max_operators: int = 6, every: int = 10) -> tuple[list[Pair], list[Pair]]:
        """Splits the training pairs into a training and a validation set.

        Args:
            max_operators: integer from 0 to 12. Pairs with more operators are left out, so that
                tests on longer statements measure generalisation.
            every: integer, 2 or above. Each `every`-th pair, by operators, is for validation.

        Returns:
            Lists of `Pair` for training and validation: 121,977 and 13,552 of the published data.
        """
        max_operators = check_integer("max_operators", max_operators, 0, _BUCKETS[-1])
        every = check_integer("every", every, 2)
        pairs = [pair for n in range(max_operators + 1) for pair in self.train.get(n, [])]
        validation = pairs[every - 1 :: every]
        del pairs[every - 1 :: every]
        return pairs, validation


def encode(statement: str) -> list[int]:
    """Converts a statement to token ids, from 1 to 11 in the order of `TOKENS`. 0 is for padding.

    Another token is a `ValueError`. Brackets are not checked.

    >>> encode("( not a )")
    [1, 5, 6, 2]
    """
    tokens = statement.split()
    for number, token in enumerate(tokens, 1):
        if token not in _IDS:
            raise ValueError(f"token {number} must be one of {' '.join(TOKENS)}, got {token!r}.")
    return [_IDS[token] for token in tokens]


def count_operators(statement: str) -> int:
    """Counts `and`, `or` and `not` in a statement; `ValueError` if it is malformed.

    >>> count_operators("( ( not a ) ( and ( b ( or c ) ) ) )")
    3
    """
    return _parse(statement)[1]


def relation(left: str, right: str) -> str:
    """Decides how two statements are related, over the 64 worlds.

    The first row of the table that applies is the answer. Statements that are neither tautologies
    nor contradictions, the only ones in the published data, match exactly one row. For the others
    the order decides: a contradiction is `<` any other statement, and any other statement is `<` a
    tautology, though `|`, `v` or even `^` may hold too.

    | label | holds when                                                         |
    |-------|--------------------------------------------------------------------|
    | `=`   | both are true in the same worlds                                   |
    | `<`   | where `left` is true so is `right`, and `right` elsewhere too      |
    | `>`   | where `right` is true so is `left`, and `left` elsewhere too       |
    | `^`   | exactly one is true in every world: negation                       |
    | `|`   | they are never both true, and in some world neither is             |
    | `v`   | at least one is true in every world, and in some world both: cover |
    | `#`   | none of these: independence                                        |

    A malformed statement is a `ValueError`. Nesting may be as deep as memory allows.

    >>> relation("( a ( and b ) )", "a"), relation("( not c )", "c"), relation("a", "f")
    ('<', '^', '#')
    """
    worlds = []
    for name, statement in (("left", left), ("right", right)):
        try:
            worlds.append(_parse(statement)[0])
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return _label(*worlds)


def load(directory: StrPath, verify_labels: bool = False) -> Corpus:
    """Reads `train0` to `train12` and `test0` to `test12`, and checks every line.

    A line is `label<TAB>left<TAB>right`. A file may be empty.

    Args:
        directory: directory of the published, unpacked files.
        verify_labels: whether to compute each label from its statements and compare.

    Raises:
        FileNotFoundError: if the directory or a file is missing.
        ValueError: if a line is malformed or has a wrong label; or all training files are empty.

    >>> corpus = generate(100)
    >>> save(corpus, "logic")
    >>> load("logic") == corpus
    True
    """
    parse = functools.cache(_parse)  # simple statements occur thousands of times
    train, test = (
        {n: _read(Path(directory) / f"{part}{n}", parse, verify_labels) for n in _BUCKETS}
        for part in ("train", "test")
    )
    if not any(train.values()):
        raise ValueError(
            f"{directory}: the files train0 to train12 are all empty. Copy them from {_SOURCE}."
        )
    return Corpus(train, test)


def save(corpus: Corpus, directory: StrPath) -> None:
    """Writes the 26 files of a corpus that `load` reads; if one exists, `FileExistsError`."""
    directory = Path(directory)
    parts = {"train": corpus.train, "test": corpus.test}
    files = {f"{part}{n}": parts[part].get(n, []) for part in parts for n in _BUCKETS}
    present = [name for name in files if (directory / name).exists()]
    if present:
        raise FileExistsError(
            f"{directory}: {', '.join(present)} exists and is not overwritten. Move the files."
        )
    directory.mkdir(parents=True, exist_ok=True)
    for name, pairs in files.items():
        text = "".join("\t".join(pair) + "\n" for pair in pairs)
        (directory / name).write_text(text, encoding="utf-8", newline="\n")


def generate(count: int, max_operators: int = 12, seed: int = 0) -> Corpus:
    """Draws pairs the way the published ones were drawn.

    Four of the six variables are drawn for a pair, then two statements over them, each with a
    budget of 12. With probability 5/9, or with a budget below 2, a statement is a variable, else
    `and` or `or` of two statements with half the budget, rounded down. At every level, variables
    included, it is negated with probability 1/3. Tautologies and contradictions are drawn again.
    The pair goes to the bucket of the statement with more operators; 12 or more share one bucket.
    Duplicates in a bucket are dropped. The first 85% of a bucket, rounded down and in the order
    drawn, are for training. Simple pairs are drawn early and often, so test pairs are rarer and
    longer, in the published data too.

    500,000 drawn pairs leave 249,300 to 250,300 (five seeds); 249,069 are published. The total
    variation distance from the published buckets is at most 0.006 for sizes, 0.022 for labels.

    Args:
        count: positive integer, number of pairs to draw. Many are duplicates: half of 500,000.
        max_operators: integer from 0 to 12. Pairs with more operators are dropped after they are
            drawn, so the other buckets do not change.
        seed: integer, 0 or above. It gives the same corpus on every platform.

    >>> pair = generate(1000, seed=1).test[4][0]
    >>> relation(pair.left, pair.right) == pair.label
    True
    """
    count = check_integer("count", count, 1)
    max_operators = check_integer("max_operators", max_operators, 0, _BUCKETS[-1])
    # Only random() promises the same numbers in every version of Python.
    uniform = random.Random(check_integer("seed", seed, 0)).random
    choices = list(itertools.combinations(VARIABLES, 4))
    buckets: dict[int, dict[Pair, None]] = {n: {} for n in _BUCKETS}
    for _ in range(count):
        variables = choices[int(uniform() * len(choices))]
        left, left_worlds, left_operators = _draw_contingent(variables, uniform)
        right, right_worlds, right_operators = _draw_contingent(variables, uniform)
        bucket = min(max(left_operators, right_operators), _BUCKETS[-1])
        if bucket <= max_operators:
            buckets[bucket][Pair(_label(left_worlds, right_worlds), left, right)] = None
    train, test = {}, {}
    for n, distinct in buckets.items():
        pairs = list(distinct)
        cut = len(pairs) * 85 // 100
        train[n], test[n] = pairs[:cut], pairs[cut:]
    return Corpus(train, test)


def _draw_contingent(variables, uniform):
    """Draws a statement that is true in some worlds and false in others."""
    while True:
        statement = _draw(12, variables, uniform)
        if 0 < statement[1] < _ALL_WORLDS:
            return statement


def _draw(budget, variables, uniform):
    """Draws any statement: its text, its worlds and its number of operators."""
    if budget < 2 or uniform() < 5 / 9:
        text = variables[int(uniform() * len(variables))]
        worlds, operators = _WORLDS[text], 0
    else:
        operator = "and" if uniform() < 0.5 else "or"
        left, left_worlds, left_operators = _draw(budget // 2, variables, uniform)
        right, right_worlds, right_operators = _draw(budget // 2, variables, uniform)
        text = f"( {left} ( {operator} {right} ) )"
        worlds = left_worlds & right_worlds if operator == "and" else left_worlds | right_worlds
        operators = left_operators + right_operators + 1
    if uniform() < 1 / 3:
        return f"( not {text} )", worlds ^ _ALL_WORLDS, operators + 1
    return text, worlds, operators


def _label(left, right):
    """The relation of two sets of worlds; the rows of the table in `relation`, in order."""
    if left == right:
        return "="
    common = left & right
    if common == left:
        return "<"
    if common == right:
        return ">"
    covers = left | right == _ALL_WORLDS
    if not common:
        return "^" if covers else "|"
    return "v" if covers else "#"


def _parse(statement: str) -> tuple[int, int]:
    """The worlds in which a statement is true, and its number of operators."""
    stack: list = ["", "", ""]  # sentinels, then tokens, worlds, and (word, worlds) of `( and X )`
    tokens = statement.split()
    for number, token in enumerate(tokens, 1):
        if token in _WORLDS or token in ("(", "and", "or", "not"):
            stack.append(_WORLDS.get(token, token))
            continue
        opened, middle, last = stack[-3:]
        del stack[-3:]
        if token != ")" or opened != "(":
            raise ValueError(f"token {number}, {reprlib.repr(token)}, is unexpected. {_GRAMMAR}")
        if middle == "not" and type(last) is int:
            stack.append(last ^ _ALL_WORLDS)
        elif middle in ("and", "or") and type(last) is int:
            stack.append((middle, last))
        elif type(middle) is int and type(last) is tuple:
            stack.append(middle & last[1] if last[0] == "and" else middle | last[1])
        else:
            raise ValueError(f"token {number}, ')', does not close a statement. {_GRAMMAR}")
    if len(stack) != 4 or type(stack[3]) is not int:
        raise ValueError(f"{reprlib.repr(statement)} is not one complete statement. {_GRAMMAR}")
    return stack[3], sum(map(tokens.count, ("and", "or", "not")))


def _read(path: Path, parse: Callable[[str], tuple[int, int]], verify: bool) -> list[Pair]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file. The data are published in {_SOURCE}.")
    pairs = []
    with open(path, "rb") as file:
        for number, line in enumerate(lines(path, file), 1):
            try:
                pairs.append(_pair(line, parse, verify))
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from None
    return pairs


def _pair(line, parse, verify):
    fields = line.split("\t")
    if len(fields) != 3 or len(fields[0]) != 1 or fields[0] not in LABELS:
        raise ValueError(
            f"must be a label ({' '.join(LABELS)}) and two statements, separated by tabs, got "
            f"{reprlib.repr(line)}."
        )
    pair = Pair(*fields)
    label = _label(parse(pair.left)[0], parse(pair.right)[0])
    if verify and pair.label != label:
        raise ValueError(f"the label must be {label!r} by truth table, got {pair.label!r}.")
    return pair
