"""`--output` of the commands: a name with a suffix is a file, a name without one is a directory."""

import json

import pytest

from helpers import commands
from helpers.commands import contents, ours
from helpers.parsed_files import records_of
from keras_onlstm.command_line.parse import FORMATS, PICTURES, SHARDED
from keras_onlstm.command_line.score import FORMATS as SCORE_FORMATS
from keras_onlstm.models import LanguageModel
from keras_onlstm.models.ensemble import save_eight_bit

pytestmark = pytest.mark.backend("tensorflow")  # nothing here depends on it

WORDS = ["<eos>", "<unk>", "the", "cat", "saw", "a", "dog"]
TEXT = "The cat saw a dog. A dog saw.\n\n \t\nThe cat.\n"  # three sentences and two blank lines
SENTENCES = ["The cat saw a dog", "A dog saw", "The cat"]
ROWS = [SENTENCES[:2], [], [], SENTENCES[2:]]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.npz"
    model = LanguageModel(len(WORDS), 8, 16, 2, 4, vocabulary=WORDS, seed=0)
    model.build()
    save_eight_bit(model, path)
    return path


@pytest.fixture
def command(model, tmp_path, monkeypatch, capsys):
    """Runs a command with the model in the folder of `in.txt`: (exit status, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text(TEXT)
    run = commands.command_runner(monkeypatch, capsys)
    return lambda name, *flags, **more: run(name, "--model", model, *flags, **more)


def printed(result):
    status, output, errors = result
    assert (status, ours(errors)) == (0, []), errors
    return output


def needs(form):
    if form == "parquet":
        pytest.importorskip("pyarrow")
    elif form == "png":
        pytest.importorskip("resvg_py")


def suffix(form):
    return {"brackets": "txt", "pretty": "txt", "table": "txt"}.get(form, form)


def names(directory):
    return sorted(path.name for path in directory.iterdir() if path.name[0] in "0123456789")


@pytest.mark.parametrize("form", FORMATS)
def test_name_with_a_suffix_is_a_file(command, tmp_path, form):
    """The file contains what is printed, or a picture of the only sentence, without blank lines."""
    needs(form)
    path = tmp_path / f"new.{suffix(form)}"
    stdin = b"\nThe cat saw.\n \n" if form in PICTURES else TEXT.encode()
    assert printed(command("parse", "--format", form, "--output", path, stdin=stdin)) == f"{path}\n"
    assert path.is_file()
    if form == "parquet":
        import pyarrow.parquet

        rows = pyarrow.parquet.read_table(path).to_pylist()
        assert [[" ".join(words) for words in row["words"]] for row in rows] == ROWS
        assert [row["row"] for row in rows] == [0, 1, 2, 3]
        assert not any(row["error"] for row in rows)
    elif form == "png":
        assert path.read_bytes().startswith(b"\x89PNG")
    else:
        printed_text = printed(command("parse", "--format", form, stdin=stdin))
        assert path.read_text().rstrip("\n") == printed_text.rstrip("\n")


@pytest.mark.parametrize("name", ["new", "new.v2/"])
@pytest.mark.parametrize("form", FORMATS)
def test_name_without_a_suffix_is_a_directory(command, tmp_path, form, name):
    """The directory has a file for each sentence, or shards."""
    needs(form)
    flags = ["--format", form, "--file", "in.txt", "--output", name]
    status, output, errors = command("parse", *flags)
    assert status == 0, errors
    actual = names(tmp_path / name)
    if form in SHARDED:
        assert actual == ["00000." + {"brackets": "txt", "json": "jsonl"}.get(form, form)]
        assert "4 rows; 10 words" in output
        return
    assert actual == [f"{number}.{suffix(form)}" for number in (1, 2, 3)]
    assert output.endswith(f": 1.{suffix(form)} to 3.{suffix(form)}\n")
    if form != "png":
        for number, sentence in enumerate(SENTENCES, 1):
            printed_text = printed(command("parse", "--format", form, sentence))
            written = (tmp_path / name / f"{number}.{suffix(form)}").read_text()
            assert written.rstrip("\n") == printed_text.rstrip("\n")


@pytest.mark.parametrize("form", SCORE_FORMATS)
def test_score_output(command, tmp_path, form):
    needs(form)
    path = tmp_path / f"new.{suffix(form)}"
    flags = ["--format", form, "--file", "in.txt"]
    assert printed(command("score", *flags, "--output", path)) == f"{path}\n"
    if form == "parquet":
        import pyarrow.parquet

        rows = pyarrow.parquet.read_table(path).to_pylist()
    else:
        assert path.read_text() == printed(command("score", *flags))
    if form == "table":
        assert "The cat saw a dog. A dog saw." in path.read_text()
    else:
        rows = rows if form == "parquet" else list(map(json.loads, path.read_text().splitlines()))
        assert [row["tokens"] for row in rows] == [9, 0, 0, 3]
        assert [row["error"] for row in rows] == [None] * 4
        flags = flags if form == "parquet" else flags[2:]  # directories are JSON by default
        status, output, _ = command("score", *flags, "--output", "new")
        assert status == 0 and "4 rows; 12 words" in output
        assert records_of(tmp_path / "new") == [pytest.approx(row) for row in rows]


def test_blank_lines_are_kept(command, tmp_path):
    """Formats with a line per line of the input keep its blank lines."""
    trees = [printed(command("parse", sentence))[:-1] for sentence in SENTENCES]
    printed_text = [*trees[:2], "", "", trees[2]]
    assert printed(command("parse", stdin=TEXT.encode())).splitlines() == printed_text
    command("parse", "--file", "in.txt", "--output", "new")
    shards = (tmp_path / "new" / "00000.txt").read_text().splitlines()
    assert shards == [" ".join(trees[:2]), "", "", trees[2]]
    assert printed(command("parse", "--format", "conll", stdin=TEXT.encode())).count("\n\n") == 2


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["parse", "--format", "svg", "a", "--output", "taken"], ["taken: is a file", "taken.svg"]),
        (["parse", "--format", "svg", "a", "--output", "old.v1"], ["is a directory", "old.v1/"]),
        (["parse", "--format", "svg", "a", "--output", "taken/a"], ["taken/a", "be written"]),
        (["parse", "--format", "svg", "a", "dog"], ["several sentences", "--format html"]),
        (["parse", "--format", "png", "a"], ["--format png: requires --output"]),
        (["score", "a", "--output", "taken"], ["taken: is a file", "taken.txt"]),
        (["compact", "--output", "new"], ["new: the name of a compact model must end in .npz"]),
        (
            ["parse", "a", "--output", "a.svg"],
            ["a.svg", "a .svg file needs --format svg", "brackets"],
        ),
        (["parse", "--format", "parquet", "a", "--output", "a.txt"], ["must end in .parquet"]),
        (["score", "a", "--output", "a.jsonl"], ["a.jsonl", "--format json", "table"]),
        (["score", "--file", "in.txt", "--format", "table", "--output", "new"], ["one file"]),
        (["parse", "a", "--output", "new"], ["--file FILE", "--output new.txt"]),
        (["parse", "a", "--output", "a.txt", "--workers", "2"], ["--workers", "--output DIR"]),
        (["parse", "--format", "png", "a", "dog", "--output", "a.png"], ["--output DIR"]),
        (["parse", "--format", "svg", " ", "--output", "gone"], ["Nothing to parse"]),
        *(
            ([name, "--format", form, " ", "--output", f"a.{suffix(form)}"], [f"Nothing to {name}"])
            for name, forms in (("parse", FORMATS), ("score", SCORE_FORMATS))
            for form in forms
        ),
        (["parse", "a", "--output", "gone/a.txt"], ["gone/a.txt: cannot be written"]),
    ],
    ids=" ".join,
)
def test_errors_write_nothing(command, tmp_path, arguments, parts):
    """The error is one line, and nothing is written."""
    if "--format" in arguments:
        needs(arguments[arguments.index("--format") + 1])
    (tmp_path / "taken").write_text("whole")
    (tmp_path / "old.v1").mkdir()
    before = contents(tmp_path)
    result = command(*arguments)
    commands.refused("keras-onlstm", result, *parts)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["parse", "score"])
@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("in.txt", "--output in.txt: is also an input, which would be lost. Choose another"),
        ("../in.txt", None),  # another file
        ("new.npz", "--output new.npz: .npz is a suffix of models. Choose another name."),
        ("new.onnx", "--output new.onnx: .onnx is a suffix of models. Choose another name."),
    ],
)
def test_inputs_and_models_are_not_overwritten(command, tmp_path, model, name, output, message):
    before = model.read_bytes()
    status, _, errors = command(name, "--file", "in.txt", "--output", output)
    if message is None:
        assert status == 0
    else:
        assert status == 2 and message in errors
    assert (tmp_path / "in.txt").read_text() == TEXT and model.read_bytes() == before
    assert not list(tmp_path.glob("new.*"))
