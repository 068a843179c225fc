"""Large files parsed in shards: results, resumed runs, killed processes, invalid rows."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers.commands import command_runner, refused
from helpers.parsed_files import ODD, SENTENCES, content, records_of
from keras_onlstm import Parser
from keras_onlstm.parsing import brackets
from keras_onlstm.scale import corpus
from keras_onlstm.scale.corpus import Counts, process
from keras_onlstm.scale.shards import cut, read
from keras_onlstm.scale.tasks import Parsing

pytestmark = pytest.mark.keras_free


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / "odd.txt", tmp_path / "plain.txt"]
    paths[0].write_bytes(ODD)
    paths[1].write_text("".join(f"{sentence}\n" for sentence in SENTENCES))
    return paths


def expected():
    """The content of all shards."""
    parser = Parser.load()
    lines = [
        "(X Prices fell) (X It rained)",
        "",  # a blank line
        "# has no words.",
        "# is not UTF-8 text.",
        "# must not contain control characters, got '\\x00' at character 2. Remove it.",
        "# has a sentence of 6 words, more than 5.",
        "(X last)",
    ]
    plain = [brackets(parser.parse(sentence)) for sentence in SENTENCES[:3]]
    plain.append(brackets(parser.parse(SENTENCES[3])))
    return "".join(f"{line}\n" for line in [*lines, *plain * 6])


PARSING = Parsing(max_words=5)


def test_shards_contain_every_row_once(files):
    shards = cut(files, rows=4)
    assert [shard.rows for shard in shards] == [4, 3, 4, 4, 4, 4, 4, 4]
    assert [shard.row for shard in shards] == [0, 4, *range(7, 31, 4)]
    texts = [text for shard in shards for text in read(shard)]
    assert texts[7:] == SENTENCES
    assert texts[0] == "Prices fell. It rained." and texts[3] == b"x\xff" and texts[6] == "last"


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_match_the_parser(files, tmp_path, workers):
    completed = []
    actual = process(files, tmp_path / "out", PARSING, 5, workers, lambda *n: completed.append(n))
    words = 5 + 6 * sum(len(Parser.load().tokenize(sentence)) for sentence in SENTENCES[:4])
    assert actual == Counts(31, words, 4)
    assert content(tmp_path / "out") == expected()
    assert completed == sorted(completed) and completed[-1] == (31, 31) and len(completed) == 7


def test_finished_shards_are_not_written_again(files, tmp_path):
    output = tmp_path / "out"
    process(files, output, PARSING, 5)
    before = {path.name: path.stat().st_mtime_ns for path in output.iterdir()}
    (output / "00002.txt").unlink()
    assert process(files, output, PARSING, 5).rows == 5
    changed = {p.name for p in output.iterdir() if before[p.name] != p.stat().st_mtime_ns}
    assert changed - {".lock"} == {"00002.txt"}
    assert content(output) == expected()
    assert process(files, output, PARSING, 5) == Counts(0, 0, 0)


def test_json_records(files, tmp_path):
    process(files, tmp_path / "json", PARSING._replace(form="json"), 100)
    records = records_of(tmp_path / "json")
    assert [record["row"] for record in records] == list(range(31))
    assert records[0]["words"] == [["Prices", "fell"], ["It", "rained"]]
    lines = [f"# {r['error']}" if r["error"] else " ".join(r["trees"]) for r in records]
    assert "".join(f"{line}\n" for line in lines) == expected()


def test_parquet_input_and_output(files, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    texts = ["Prices fell. It rained.", None, *SENTENCES]
    table = pyarrow.table({"id": range(len(texts)), "body": texts})
    parquet.write_table(table, tmp_path / "in.parquet", row_group_size=10)
    parsing = Parsing("parquet", "body")
    actual = process([tmp_path / "in.parquet"], tmp_path / "out", parsing)
    assert (actual.rows, actual.errors) == (26, 1)
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 3
    rows = records_of(tmp_path / "out")
    assert rows[0]["trees"] == ["(X Prices fell)", "(X It rained)"]
    assert rows[1]["error"] == "must be text or a list of words, got None."
    parser = Parser.load()
    assert [row["trees"] for row in rows[2:]] == [[brackets(parser.parse(s))] for s in SENTENCES]
    with parquet.ParquetWriter(tmp_path / "gaps.parquet", table.schema) as writer:
        for part in (table[:0], table[:1], table[:0], table[1:2]):
            writer.write_table(part)
    shards = cut([tmp_path / "gaps.parquet"], rows=10, column="body")
    assert [(shard.row, shard.rows) for shard in shards] == [(0, 1), (1, 1)]
    with pytest.raises(ValueError, match="has no column 'text', only id, body"):
        process([tmp_path / "in.parquet"], tmp_path / "other", PARSING)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(ValueError, match=r"broken\.parquet: not a complete Parquet file"):
        process([tmp_path / "broken.parquet"], tmp_path / "other", PARSING)


def write_empty_files(directory):
    """Writes files of every kind without rows."""
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    table = pyarrow.table({"text": pyarrow.array([], pyarrow.string())})
    names = ("no_rows.parquet", "no_row_groups.parquet", "no_bytes.txt")
    paths = [directory / name for name in names]
    parquet.write_table(table, paths[0])
    parquet.ParquetWriter(paths[1], table.schema).close()
    paths[2].write_bytes(b"")
    return paths


def test_files_without_rows(files, tmp_path):
    """They have no shard and add no row to those of other files."""
    completed = []

    def progress(*rows):
        completed.append(rows)

    empty = write_empty_files(tmp_path)
    for number, paths in enumerate([*([path] for path in empty), empty]):
        output = tmp_path / f"out{number}"
        for _ in range(2):
            assert process(paths, output, PARSING, progress=progress) == Counts(0, 0, 0)
            assert content(output) == ""
    assert not completed
    paths = [empty[0], files[0], *empty, files[1], empty[0]]
    actual = process(paths, tmp_path / "out", PARSING, 5, 1, progress)
    assert actual.rows == 31 and content(tmp_path / "out") == expected()
    assert len(completed) == 7 and completed[-1] == (31, 31)


@pytest.mark.parametrize("name", ["parse", "score"])
def test_commands_of_files_without_rows(tmp_path, monkeypatch, capsys, name):
    run = command_runner(monkeypatch, capsys)
    for number, path in enumerate(write_empty_files(tmp_path)):
        output = tmp_path / f"out{number}"
        result = run(name, "--file", path, "--output", output)
        assert result == (0, f"{output}: 0 rows; 0 words\n", "")
        if path.suffix == ".parquet":
            refused(
                "keras-onlstm",
                run(name, "--file", path),
                f"{path}: a Parquet file requires --output",
            )
    refused(
        "keras-onlstm", run(name, "--file", tmp_path), f"{tmp_path}: is a directory", "--file FILE"
    )


def test_parse_dataset(files):
    rows = [{"id": number, "text": text} for number, text in enumerate(["prices fell", "", None])]
    actual = list(Parser.load().parse_dataset(rows, block=2))
    assert actual[0] == {**rows[0], "words": [["prices", "fell"]], "trees": ["(X prices fell)"],
                        "error": None}  # fmt: skip
    assert [row["error"] for row in actual[1:]] == [
        None, "must be text or a list of words, got None."
    ]  # fmt: skip
    with pytest.raises(ValueError, match="row 3: has no 'text'; it has id"):
        list(Parser.load().parse_dataset([*rows[:2], {"id": 1}], block=2))


def test_directory_of_another_run_raises(files, tmp_path):
    output = tmp_path / "out"
    process(files, output, PARSING, 5)
    for parsing, rows, name in (
        (PARSING, 6, "rows"),
        (PARSING._replace(load={"method": "binary"}), 5, "load"),
    ):
        with pytest.raises(ValueError, match=f"was started with other {name}"):
            process(files, output, parsing, rows)
    files[1].write_text("changed\n")
    with pytest.raises(ValueError, match="was started with other files"):
        process(files, output, PARSING, 5)
    (output / corpus.PLAN).write_text("[")
    with pytest.raises(ValueError, match=r"corpus\.json: this file is damaged"):
        process(files, output, PARSING, 5)
    with pytest.raises(FileExistsError, match="contains other files"):
        process(files, tmp_path, PARSING)
    with pytest.raises(FileNotFoundError, match="none: no such file"):
        process([tmp_path / "none"], tmp_path / "new", PARSING)
    assert not (tmp_path / "new").exists()


def command(files, output, *more):
    program = "from keras_onlstm.command_line import main; main()"
    flags = [word for path in files for word in ("--file", str(path))]
    options = ["--output", str(output), "--rows", "2", "--max-words", "5", *more]
    arguments = [sys.executable, "-c", program, "parse", *flags, *options]
    return subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def wait_for_shards(running, output, count):
    while running.poll() is None and len(list(output.glob("0*"))) < count:
        time.sleep(0.01)


@pytest.mark.parametrize("workers", [1, 2])
def test_error_while_loading_the_model(files, tmp_path, workers):
    """The error is raised, and the directory can be used by another run."""
    task = PARSING._replace(load={"name_or_path": str(tmp_path / "none.npz")})
    with pytest.raises(FileNotFoundError, match=r"none\.npz: no such model"):
        process(files, tmp_path / "out", task, workers=workers)
    assert {path.name for path in (tmp_path / "out").iterdir()} <= {".lock"}
    assert process(files[:1], tmp_path / "out", PARSING).rows == 7


def workers_of(running):
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    return [
        int(child) for child in children
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("victim", ["the command", "a worker"])
def test_resume_after_a_killed_process(files, tmp_path, victim):
    files[1].write_text("".join(f"{sentence}\n" for sentence in SENTENCES * 20))
    output = tmp_path / "out"
    running = command(files, output, "--workers", "2")
    wait_for_shards(running, output, 3)
    workers = workers_of(running)
    assert len(workers) == 2
    os.kill(running.pid if victim == "the command" else workers[0], signal.SIGKILL)
    _, err = running.communicate(timeout=60)
    if victim == "a worker":
        assert running.returncode == 2
        assert "A worker process ended unexpectedly" in err and "Traceback" not in err
    end = time.monotonic() + 60
    while any(os.path.exists(f"/proc/{worker}") for worker in workers):  # no worker survives
        assert time.monotonic() < end
        time.sleep(0.01)
    finished = len(list(output.glob("0*")))
    assert 3 <= finished < 240
    lines = content(output).splitlines()
    running = command(files, output, "--workers", "2")
    out, err = running.communicate(timeout=120)
    assert running.returncode == 0, err
    assert f"{487 - len(lines):,} rows" in out
    odd, plain = expected().split("\n", 7)[:7], expected().split("\n", 7)[7]
    assert content(output) == "".join(f"{line}\n" for line in odd) + plain * 20
