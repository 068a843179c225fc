"""Writes the tables of docs/results.md and docs/benchmarks.md from what was measured.

    python docs/write_tables.py             after a file of docs/measured/ has changed
    python docs/write_tables.py --check     says which tables are not those of the files

A file is a result: `command`, the lines that measured it, or `note`, where no command of the
package does; and `tables`, each of `columns` and `rows`. A column has a name and a form, in
Python's format language, of the numbers of its cells: `{:.1f} ± {:.1f}`. A cell is a number or a
list of numbers in that form, `{"form": ..., "values": [...]}` in another one, or text. A page has
`<!-- table: NAME 1 -->` where the first table of NAME.json stands, up to `<!-- end of table -->`.
"""

import json
import re
from pathlib import Path

from keras_onlstm.utils.console import ArgumentParser, report
from keras_onlstm.utils.files import replacing

DOCS = Path(__file__).resolve().parent
PAGES = ("results.md", "benchmarks.md")
TABLE = re.compile(
    r"<!-- table: (?P<name>\w+) (?P<number>[1-9]\d*) -->\n(?P<written>.*?)<!-- end of table -->",
    re.DOTALL,
)


def cell(value, form):
    """The text of a cell."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        form, value = value["form"], value["values"]
    return form.format(*(value if isinstance(value, list) else [value]))


def table(found):
    """A table in Markdown."""
    columns = found["columns"]
    rows = [
        [cell(value, column["form"]) for value, column in zip(row, columns, strict=True)]
        for row in found["rows"]
    ]
    head, *others = (
        "|" + "".join(f" {text} |" if text else " |" for text in row) + "\n"
        for row in [[column["name"] for column in columns], *rows]
    )
    return "".join([head, "|" + "---|" * len(columns) + "\n", *others])


def read(path):
    """The tables of a file in Markdown."""
    result = json.loads(path.read_text(encoding="utf-8"))
    if not (result.get("command") or result.get("note")):
        raise ValueError(f"{path}: has neither a command nor a note of what measured it.")
    return [table(found) for found in result["tables"]]


def written(text, measured):
    """A page with its tables as the files have them."""

    def write(match):
        new = read(measured / f"{match['name']}.json")[int(match["number"]) - 1]
        start, end = (match[0].splitlines()[place] for place in (0, -1))
        return f"{start}\n\n{new}\n{end}"

    return TABLE.sub(write, text)


def differing(text, new):
    """Names of the tables of a page that are others in the new page."""
    return [
        f"{one['name']} {one['number']}"
        for one, other in zip(TABLE.finditer(text), TABLE.finditer(new), strict=True)
        if one["written"] != other["written"]
    ]


def main(options):
    wrong, docs = [], Path(options.docs)
    for name in PAGES:
        path = docs / name
        text = path.read_text(encoding="utf-8")
        new = written(text, docs / "measured")
        found = differing(text, new)
        wrong += [f"{path}: table {one}" for one in found]
        if found and not options.check:
            with replacing(path) as temporary:
                temporary.write_text(new, encoding="utf-8")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    if wrong and options.check:
        raise ValueError(
            f"{len(wrong)} tables are not those of docs/measured: python docs/write_tables.py"
        )


def parse_arguments():
    parser = ArgumentParser(prog=Path(__file__).name, description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--check", action="store_true", help="write nothing, end with an error where they differ")
    add("--docs", metavar="DIR", default=DOCS, help="default: beside this file")
    return parser, parser.parse_args()


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
