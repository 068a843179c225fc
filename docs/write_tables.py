"""Write the tables of measured figures in the documentation from the files in docs/measured.

    python docs/write_tables.py             # after a file of docs/measured has changed
    python docs/write_tables.py --check     # list the tables that differ from their files

Each JSON file holds one result. `command` lists the commands that measured it. `note` replaces it
if no command of the package did. `tables` is a list of tables with `columns` and `rows`. A column
has a name and a format string for its numbers, for example `{:.1f} ± {:.1f}`. A cell is a number or
a list of numbers in the column's format, `{"form": ..., "values": [...]}` in a format of its own,
or text. A format such as `{0:.1f}` shows only the first number of a list, for example the median
without its quartiles. A page marks the place of the first table of NAME.json with
`<!-- table: NAME 1 -->` and the end of that table with `<!-- end of table -->`.
"""

import json
import re
from pathlib import Path

from keras_onlstm.utils.console import ArgumentParser, report
from keras_onlstm.utils.files import replacing

DOCS = Path(__file__).resolve().parent
PAGES = ("results.md", "benchmarks.md", "experiments/*.md")
TABLE = re.compile(
    r"<!-- table: (?P<name>\w+) (?P<number>[1-9]\d*) -->\n(?P<content>.*?)<!-- end of table -->",
    re.DOTALL,
)


def find_pages(docs):
    """Paths of the pages with tables of measured figures."""
    return [path for pattern in PAGES for path in sorted(docs.glob(pattern))]


def format_cell(value, form):
    """Return the text of a cell."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        form, value = value["form"], value["values"]
    return form.format(*(value if isinstance(value, list) else [value]))


def format_table(table):
    """Return a table in Markdown."""
    columns = table["columns"]
    rows = [
        [format_cell(value, column["form"]) for value, column in zip(row, columns, strict=True)]
        for row in table["rows"]
    ]
    head, *others = (
        "|" + "".join(f" {text} |" if text else " |" for text in row) + "\n"
        for row in [[column["name"] for column in columns], *rows]
    )
    return "".join([head, "|" + "---|" * len(columns) + "\n", *others])


def load_tables(path):
    """Return the tables of a file in Markdown."""
    result = json.loads(path.read_text(encoding="utf-8"))
    if not (result.get("command") or result.get("note")):
        raise ValueError(f"{path}: add a `command` or a `note` that tells how it was measured.")
    return [format_table(table) for table in result["tables"]]


def update_page(text, measured):
    """Return the text of a page with its tables written from the files in `measured`."""

    def update(match):
        table = load_tables(measured / f"{match['name']}.json")[int(match["number"]) - 1]
        start, end = (match[0].splitlines()[index] for index in (0, -1))
        return f"{start}\n\n{table}\n{end}"

    return TABLE.sub(update, text)


def changed_tables(text, new):
    """Return the names of the tables that differ between two versions of a page."""
    return [
        f"{before['name']} {before['number']}"
        for before, after in zip(TABLE.finditer(text), TABLE.finditer(new), strict=True)
        if before["content"] != after["content"]
    ]


def main(options):
    differences, docs = [], Path(options.docs)
    for path in find_pages(docs):
        text = path.read_text(encoding="utf-8")
        new = update_page(text, docs / "measured")
        changed = changed_tables(text, new)
        differences += [f"{path}: table {table}" for table in changed]
        if changed and not options.check:
            with replacing(path) as temporary:
                temporary.write_text(new, encoding="utf-8")
    print(*differences, sep="\n", end="\n" if differences else "")
    if differences and options.check:
        raise ValueError(
            f"{len(differences)} tables differ from docs/measured. "
            "Run python docs/write_tables.py to update them."
        )


def parse_arguments():
    parser = ArgumentParser(prog=Path(__file__).name, description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--check", action="store_true", help="write nothing; fail if a table differs from its file")
    add("--docs", metavar="DIR", default=DOCS, help="folder of the pages (default: docs)")
    return parser, parser.parse_args()


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
