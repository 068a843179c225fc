"""Logical inference: pairs of propositional statements and the relation that holds between them.

The task of Bowman et al. (2015, https://arxiv.org/abs/1506.04834), on which ordered neurons are
tested for how well they generalise to statements longer than those seen in training. A statement
over the six variables `a` to `f` is fully bracketed, its tokens separated by spaces:

    X  =  a | ... | f  |  ( not X )  |  ( X ( and X ) )  |  ( X ( or X ) )

A statement denotes the set of worlds (truth assignments of the six variables) in which it is
true. There are 64 worlds, so the set is an integer of 64 bits, every connective is one bitwise
operation, and the relation of two statements follows from their two integers. That makes every
published label checkable and the data cheap to generate.
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
_EVERYWHERE = (1 << 64) - 1  # true in all 64 worlds
# Variable k is true in those worlds whose number has bit k set.
_WORLDS = {
    name: sum(1 << world for world in range(64) if world >> k & 1)
    for k, name in enumerate(VARIABLES)
}
_BUCKETS = range(13)  # the last one holds the pairs with 12 operators or more
_SOURCE = "data/propositionallogic/ of https://github.com/yikangshen/Ordered-Memory"
_GRAMMAR = "a statement is a variable, a to f, ( not X ), ( X ( and X ) ) or ( X ( or X ) )"


class Pair(NamedTuple):
    """Two statements and the relation of the first to the second.

    Attributes:
        label: The relation, one of `LABELS`.
        left: The first statement, bracketed.
        right: The second.
    """

    label: str
    left: str
    right: str


@dataclass(frozen=True)
class Corpus:
    """Pairs grouped by the operator count of the statement with more operators; 12 means 12 or
    more.

    Attributes:
        train: The training pairs of each number of operators, 0 to 12.
        test: The test pairs of each number of operators, 0 to 12.
    """

    train: dict[int, list[Pair]]
    test: dict[int, list[Pair]]

    def split(self, max_operators: int = 6, every: int = 10) -> tuple[list[Pair], list[Pair]]:
        """Split the training pairs into a training and a validation set.

        Args:
            max_operators: Pairs with more operators are left out, so that tests on longer
                statements measure generalisation.
            every: Each `every`-th pair (with 10 the 10th, the 20th, ...), ordered by operators and
                lines, is for validation.

        Returns:
            `(train, validation)`; 121,977 and 13,552 pairs of the published data.

        Raises:
            ValueError: `max_operators` is not within 0 to 12, or `every` is below 2.

        Example:
            >>> corpus = generate(1000)
            >>> train, validation = corpus.split(max_operators=12, every=4)
            >>> len(validation) == sum(map(len, corpus.train.values())) // 4
            True
        """
        max_operators = check_integer("max_operators", max_operators, 0, _BUCKETS[-1])
        every = check_integer("every", every, 2)
        pairs = [pair for n in range(max_operators + 1) for pair in self.train.get(n, [])]
        validation = pairs[every - 1 :: every]
        del pairs[every - 1 :: every]
        return pairs, validation


def encode(statement: str) -> list[int]:
    """Turn a statement into token ids: 1 to 11 in the order of `TOKENS`; 0 is for padding.

    Only the tokens are checked, not the brackets.

    Args:
        statement: Tokens separated by white space.

    Returns:
        List of ids, one for each token.

    Raises:
        ValueError: A token is not in `TOKENS`.

    Example:
        >>> encode("( not a )")
        [1, 5, 6, 2]
    """
    tokens = statement.split()
    for number, token in enumerate(tokens, 1):
        if token not in _IDS:
            raise ValueError(f"token {number}, {token!r}, is unknown; use {' '.join(TOKENS)}")
    return [_IDS[token] for token in tokens]


def count_operators(statement: str) -> int:
    """Count the operators of a statement; `and`, `or` and `not` count one each.

    Args:
        statement: A bracketed statement.

    Returns:
        Their number.

    Raises:
        ValueError: The statement is malformed, as for `relation`.

    Example:
        >>> count_operators("( ( not a ) ( and ( b ( or c ) ) ) )")
        3
    """
    return _parse(statement)[1]


def relation(left: str, right: str) -> str:
    """Decide how two statements are related, over the 64 worlds.

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

    Args:
        left: A bracketed statement. Nesting may be as deep as memory allows.
        right: Another one.

    Returns:
        One of `LABELS`.

    Raises:
        ValueError: A statement is malformed.

    Example:
        >>> relation("( a ( and b ) )", "a"), relation("( not c )", "c"), relation("a", "f")
        ('<', '^', '#')
    """
    worlds = []
    for side, statement in (("left", left), ("right", right)):
        try:
            worlds.append(_parse(statement)[0])
        except ValueError as error:
            raise ValueError(f"{side} statement: {error}") from None
    return _label(*worlds)


def load(directory: StrPath, verify_labels: bool = False) -> Corpus:
    """Read `train0` to `train12` and `test0` to `test12`, and check every line.

    A line is `label<TAB>left<TAB>right`. A file may be empty.

    Args:
        directory: Where the published, unpacked files are.
        verify_labels: Also compute each label from its statements and compare.

    Returns:
        The pairs, in the order of the files.

    Raises:
        FileNotFoundError: The directory or a file is missing.
        ValueError: A line is not UTF-8, does not have three fields, or has an unknown label, a
            malformed statement or (`verify_labels`) a wrong label; or all training files are empty.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     save(generate(100), directory)
        ...     load(directory) == generate(100)
        True
    """
    directory = Path(directory)
    parse = functools.cache(_parse)  # simple statements occur thousands of times
    train, test = (
        {n: _read(directory / f"{part}{n}", parse, verify_labels) for n in _BUCKETS}
        for part in ("train", "test")
    )
    if not any(train.values()):
        raise ValueError(f"{directory}: train0 to train12 are all empty; copy them from {_SOURCE}")
    return Corpus(train, test)


def save(corpus: Corpus, directory: StrPath) -> None:
    """Write a corpus in the layout that `load` reads.

    Args:
        corpus: The pairs. A number of operators without pairs becomes an empty file.
        directory: Where to write the 26 files; created if it does not exist.

    Raises:
        FileExistsError: One of the files exists; nothing is overwritten.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     save(generate(100), directory)
        ...     len(os.listdir(directory))
        26
    """
    directory = Path(directory)
    parts = {"train": corpus.train, "test": corpus.test}
    files = {f"{part}{n}": parts[part].get(n, []) for part in parts for n in _BUCKETS}
    present = [name for name in files if (directory / name).exists()]
    if present:
        raise FileExistsError(
            f"{directory}: {', '.join(present)} exists and is not overwritten; "
            "name another directory or move the files away"
        )
    directory.mkdir(parents=True, exist_ok=True)
    for name, pairs in files.items():
        text = "".join("\t".join(pair) + "\n" for pair in pairs)
        (directory / name).write_text(text, encoding="utf-8", newline="\n")


def generate(count: int, max_operators: int = 12, seed: int = 0) -> Corpus:
    """Draw pairs the way the published ones were drawn.

    Four of the six variables are drawn for a pair, then two statements over them, each with a
    budget of 12. With probability 5/9, or with a budget below 2, a statement is a variable, else
    `and` or `or` of two statements with half the budget, rounded down. At every level, variables
    included, it is negated with probability 1/3. Tautologies and contradictions are drawn again.
    The pair goes to the bucket of the statement with more operators; 12 or more share one bucket.
    Only the first of duplicates in a bucket is kept. The first 85% of a bucket, rounded down and in
    the order drawn, are for training. Simple pairs are drawn early and often, so test pairs are
    rarer and longer, in the published data too.

    500,000 drawn pairs leave 249,300 to 250,300 (five seeds); 249,069 are published. The total
    variation distance from the published buckets is at most 0.006 for sizes, 0.022 for labels.

    Args:
        count: Number of pairs to draw. Many are duplicates: half of 500,000.
        max_operators: Pairs with more operators are left out after they are drawn. This does not
            change the buckets up to here; those beyond are empty.
        seed: A nonnegative integer. It gives the same corpus on every platform.

    Returns:
        The distinct pairs, in the order drawn.

    Raises:
        ValueError: `count` is below 1, `max_operators` not within 0 to 12, or `seed` negative.

    Example:
        >>> corpus = generate(1000, seed=1)
        >>> pair = corpus.test[4][0]
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
        left, left_worlds, left_operators = _contingent(variables, uniform)
        right, right_worlds, right_operators = _contingent(variables, uniform)
        bucket = min(max(left_operators, right_operators), _BUCKETS[-1])
        if bucket <= max_operators:
            buckets[bucket][Pair(_label(left_worlds, right_worlds), left, right)] = None
    train, test = {}, {}
    for n, distinct in buckets.items():
        pairs = list(distinct)
        cut = len(pairs) * 85 // 100
        train[n], test[n] = pairs[:cut], pairs[cut:]
    return Corpus(train, test)


def _contingent(variables: tuple[str, ...], uniform: Callable[[], float]) -> tuple[str, int, int]:
    """Draw a statement that is true in some worlds and false in others."""
    while True:
        drawn = _draw(12, variables, uniform)
        if 0 < drawn[1] < _EVERYWHERE:
            return drawn


def _draw(
    budget: int, variables: tuple[str, ...], uniform: Callable[[], float]
) -> tuple[str, int, int]:
    """Draw any statement: its text, its worlds and its number of operators."""
    if budget < 2 or uniform() < 5 / 9:
        text = variables[int(uniform() * len(variables))]
        worlds, operators = _WORLDS[text], 0
    else:
        word = "and" if uniform() < 0.5 else "or"
        left, left_worlds, left_operators = _draw(budget // 2, variables, uniform)
        right, right_worlds, right_operators = _draw(budget // 2, variables, uniform)
        text = f"( {left} ( {word} {right} ) )"
        worlds = left_worlds & right_worlds if word == "and" else left_worlds | right_worlds
        operators = left_operators + right_operators + 1
    if uniform() < 1 / 3:
        return f"( not {text} )", worlds ^ _EVERYWHERE, operators + 1
    return text, worlds, operators


def _label(left: int, right: int) -> str:
    """The relation of two sets of worlds; the rows of the table in `relation`, in order."""
    if left == right:
        return "="
    common = left & right
    if common == left:
        return "<"
    if common == right:
        return ">"
    covering = left | right == _EVERYWHERE
    if not common:
        return "^" if covering else "|"
    return "v" if covering else "#"


def _parse(statement: str) -> tuple[int, int]:
    """The worlds in which a statement is true, and its number of operators."""
    stack: list = ["", "", ""]  # sentinels, then tokens, worlds, and (word, worlds) of `( and X )`
    tokens = statement.split()
    for number, token in enumerate(tokens, 1):
        if token in _WORLDS:
            stack.append(_WORLDS[token])
            continue
        if token in ("(", "and", "or", "not"):
            stack.append(token)
            continue
        opened, middle, last = stack[-3:]
        del stack[-3:]
        if token != ")" or opened != "(":
            raise ValueError(f"token {number}, {reprlib.repr(token)}, is out of place; {_GRAMMAR}")
        if middle == "not" and type(last) is int:
            stack.append(last ^ _EVERYWHERE)
        elif middle in ("and", "or") and type(last) is int:
            stack.append((middle, last))
        elif type(middle) is int and type(last) is tuple:
            stack.append(middle & last[1] if last[0] == "and" else middle | last[1])
        else:
            raise ValueError(f"token {number}, ')', closes no statement; {_GRAMMAR}")
    if len(stack) != 4 or type(stack[3]) is not int:
        raise ValueError(f"{reprlib.repr(statement)} is not one complete statement; {_GRAMMAR}")
    return stack[3], sum(map(tokens.count, ("and", "or", "not")))


def _read(path: Path, parse: Callable[[str], tuple[int, int]], verify: bool) -> list[Pair]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; the data are published in {_SOURCE}")
    with open(path, "rb") as file:
        return [
            _pair(line, parse, verify, f"{path}, line {number}")
            for number, line in enumerate(lines(path, file), 1)
        ]


def _pair(line: str, parse: Callable[[str], tuple[int, int]], verify: bool, where: str) -> Pair:
    """Check and parse a line."""
    fields = line.split("\t")
    if len(fields) != 3 or len(fields[0]) != 1 or fields[0] not in LABELS:
        raise ValueError(
            f"{where}: {reprlib.repr(line)} is not a label, one of {' '.join(LABELS)}, and two "
            "statements, separated by tabs"
        )
    pair = Pair(*fields)
    try:
        left, right = parse(pair.left)[0], parse(pair.right)[0]
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    if verify and pair.label != (label := _label(left, right)):
        raise ValueError(f"{where}: the label is {pair.label!r} and by truth table it is {label!r}")
    return pair
