"""`keras-onlstm train`, and what the other commands make of the run."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from helpers.commands import DEBUG, contents, environment, ours, run_command
from helpers.commands import refused as refused_by
from helpers.runs import assert_same_run, epochs
from keras_onlstm.command_line import train
from keras_onlstm.loading import load_trained
from keras_onlstm.models.ensemble import load_eight_bit
from keras_onlstm.runs.language_model import LanguageModelConfig, PRPNConfig
from keras_onlstm.version import __version__

# On JAX every process compiles for minutes.
pytestmark = pytest.mark.backend("tensorflow")

TINY = [*DEBUG, "--num-layers", 1, "--epochs", 1]


def printed(result):
    status, output, errors = result
    assert (status, ours(errors)) == (0, []), errors
    return output


def refused(result, *parts):
    refused_by("keras-onlstm", result, *parts)


@pytest.fixture(scope="module")
def lines():
    draw = np.random.default_rng(0).choice
    return [" ".join(draw(list("abcdefgh"), 7)) for _ in range(120)]


@pytest.fixture(scope="module")
def data(lines, tmp_path_factory):
    """A folder of three texts. Tests must not change it."""
    directory = tmp_path_factory.mktemp("data")
    for part, some in (("train", lines[:90]), ("valid", lines[90:105]), ("test", lines[105:])):
        (directory / f"{part}.txt").write_text("".join(f"{line}\n" for line in some))
    return directory


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """A finished run and its output. Tests must not change it."""
    run = tmp_path_factory.mktemp("trained") / "run"
    return run, printed(run_command("train", "--data", data, *DEBUG, "--output", run))


def test_run_prints_the_path_of_its_model(trained, data):
    run, text = trained
    assert text.splitlines()[-1] == f"Model: {run / 'best.keras'}"
    assert text.startswith(f"Reading {data}\n") and "720 tokens, 10 words" in text
    config = json.loads((run / "config.json").read_text())
    assert config["command"] == f"keras-onlstm train --preset debug --seed 0 --data {data.name}"
    assert config["model"] == "language_model" and config["data"] == [str(data)]
    assert LanguageModelConfig.load(run) == LanguageModelConfig.from_preset("debug", data=[data])
    assert [row["epoch"] for row in epochs(run)] == ["1", "2"]


def test_other_commands_accept_the_run(trained, tmp_path):
    run, _ = trained
    before = contents(run)
    text = printed(run_command("evaluate", "--model", run))
    results = json.loads((run / "results.json").read_text())
    (row,) = [line.split() for line in text.splitlines() if line.startswith(str(run))]
    printed_text = [f"{results[f'{part}_perplexity']:.2f}" for part in ("validation", "test")]
    assert row[-2:] == printed_text and results["model"] == row[1] == "ON-LSTM"
    best = min(float(row["val_perplexity"]) for row in epochs(run))
    assert results["validation_perplexity"] == pytest.approx(best, rel=1e-5)
    (run / "results.json").unlink()
    assert printed(run_command("parse", "--model", run, "a b c")).startswith("(X ")
    model = load_trained(run, "language_model")
    score = f"{model.score(['a b c'])[0].sum():.3f}"
    assert score in printed(run_command("score", "--model", run, "a b c"))
    text = printed(run_command("generate", "--model", run, "a b", "--length", 4))
    assert text.split() == ["a", "b", *model.generate("a b", 4)]
    text = printed(run_command("compact", "--model", run, "--output", tmp_path / "small.npz"))
    assert "with 8 bits" in text and len(load_eight_bit(tmp_path / "small.npz")[0].vocabulary) == 10
    flags = ["--model", run, "--graph", "parser", "--output", tmp_path]
    assert "from Keras at most" in printed(run_command("export", "onnx", *flags))
    tree = printed(run_command("parse", "--model", run, "a b c d"))
    assert printed(run_command("parse", "--model", tmp_path / "parser.onnx", "a b c d")) == tree
    assert contents(run) == before


def test_text_files_are_split(lines, tmp_path):
    """Of 20 lines, one is for validation and one for the test. Blank lines are ignored."""
    for number in range(2):
        some = lines[60 * number : 60 * (number + 1)]
        (tmp_path / f"{number}.txt").write_text("\n\n".join(some))
    files = [tmp_path / "0.txt", tmp_path / "1.txt"]
    run = tmp_path / "run"
    text = printed(run_command("train", "--data", *files, *TINY, "--output", run))
    assert "864 tokens, 10 words" in text  # 108 lines of 7 words and <eos>
    assert "perplexity" in printed(run_command("evaluate", "--model", run))
    assert json.loads((run / "results.json").read_text())["data"] == list(map(str, files))


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ([], ["--data is missing", "text files"]),
        (["--data", "short.txt"], ["--data short.txt: give a file of 20 lines or more"]),
        (["--data", "empty.txt"], ["--data empty.txt", "20 lines or more"]),
        (["--data", "gone"], ["--data gone: no such folder or file"]),
        (["--data", "gone.txt"], ["gone.txt"]),
        (["--data", "folder"], ["folder has no train.txt"]),
        (["--data", "latin.txt"], ["latin.txt: is not UTF-8 text"]),
        (["--data", "long.txt", "gone.txt"], ["--data gone.txt: no such folder or file"]),
        (
            ["--data", "long.txt", "--units", "7"],
            ["--units 7", "must be divisible by --chunk-size 5"],
        ),
        (["--data", "long.txt", "--model", "gpt"], ["--model gpt: choose one of"]),
        (["--data", "long.txt", "--slots", "3"], ["--slots: belongs to --model prpn"]),
        (["--data", "long.txt", "--chunk", "3"], ["--chunk: did you mean --chunk-size?"]),
        (["--data", "long.txt", "--batch-size", "900"], ["the training text", "too few"]),
        (["--resume"], ["config.json: no such file", "--output"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_argument_errors(arguments, parts, lines, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "long.txt").write_text("\n".join(lines))
    (tmp_path / "short.txt").write_text("\n".join(lines[:9]))
    (tmp_path / "empty.txt").write_text("\n\n")
    (tmp_path / "latin.txt").write_bytes(b"a\xff\n" * 40)
    (tmp_path / "folder").mkdir()
    before = contents(tmp_path)
    preset = [] if arguments in ([], ["--resume"]) else DEBUG
    refused(run_command("train", *preset, *arguments, "--output", "run"), *parts)
    assert contents(tmp_path) == before


def test_prpn(data, tmp_path):
    run = tmp_path / "run"
    flags = ["--data", data, "--epochs", 1, "--slots", 4, "--output", run]
    text = printed(run_command("train", "--model", "prpn", *DEBUG, *flags, "--steps", 1))
    assert "PRPN" in text and "Model: " not in text
    result = run_command("train", "--model", "language_model", "--output", run, "--resume")
    refused(result, run, "was started with --model prpn, not language_model")
    assert "Model: " in printed(run_command("train", "--output", run, "--resume"))
    assert PRPNConfig.load(run).slots == 4
    assert "PRPN" in printed(run_command("evaluate", "--model", run))


def test_resumed_run_matches_uninterrupted_run(trained, data, tmp_path):
    run = tmp_path / "run"
    flags = ["--data", data, *DEBUG, "--output", run]
    printed(run_command("train", *flags, "--steps", 3))
    refused(run_command("train", *flags), run, "exists already", "--resume")
    result = run_command("train", "--resume", "--output", run, "--units", 30)
    refused(result, run, "was started with --units 20, not 30", "Leave --units out")
    printed(run_command("train", *flags, "--resume"))  # the same flags may be given again
    assert_same_run(run, trained[0])


@pytest.fixture
def config_of(monkeypatch, tmp_path):
    """The configuration of a command line."""
    configs = []
    monkeypatch.setattr(train, "train", lambda config, options: configs.append(config))

    def config_of(*arguments):
        printed(run_command("train", *arguments, "--output", tmp_path / "new"))
        return configs.pop()

    return config_of


def test_config_file(config_of, trained, tmp_path):
    """Flags override the file, which overrides the preset."""
    expected = LanguageModelConfig.from_preset("small", units=70, epochs=3, tie_weights=False)
    values = {"preset": "small", "units": 60, "epochs": 3, "tie_weights": False, "max_words": None}
    (tmp_path / "values.json").write_text(json.dumps(values))
    toml = 'preset = "small"\nunits = 60\nepochs = 3\ntie_weights = false\n'
    (tmp_path / "values.toml").write_text(toml)
    for name in ("values.json", "values.toml"):
        assert config_of("--config", tmp_path / name, "--units", 70) == expected
    again = config_of("--config", trained[0] / "config.json")
    assert again == LanguageModelConfig.load(trained[0])
    other = config_of("--config", trained[0] / "config.json", "--seed", 5, "--no-tie-weights")
    assert (other.seed, other.tie_weights, other.units) == (5, False, again.units)


@pytest.mark.parametrize(
    ("name", "text", "parts"),
    [
        (
            "a.json",
            '{"unit": 3}',
            ["a.json has an unknown setting 'unit'", "did you mean 'units'?"],
        ),
        ("a.json", '{"units": "many"}', ["--units must be an integer, 1 or above, not 'many'"]),
        ("a.json", '{"units": 0}', ["--units must be an integer, 1 or above, not 0"]),
        ("a.json", '{"model": "prpn"}', ["a.json is for a 'prpn', not for a 'language_model'"]),
        ("a.json", '{"preset": "huge"}', ["--preset", "not 'huge'"]),
        ("a.json", "[]", ["a.json", "not []"]),
        ("a.json", "{", ["a.json", "Give a JSON or TOML file"]),
        ("a.json", "[" * 100_000, ["a.json", "Give a JSON or TOML file"]),
        ("a.json", "\xff", ["a.json", "Give a JSON or TOML file"]),
        ("a.toml", "units = ", ["a.toml", "Give a JSON or TOML file"]),
        ("b.json", "{}", ["a.json: cannot be read (No such file"]),
    ],
)
def test_errors_in_a_config_file(name, text, parts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text, encoding="latin-1")
    flags = ["--config", "a.toml" if name == "a.toml" else "a.json", "--output", "run"]
    refused(run_command("train", *flags), *parts)


def test_log_every(data, tmp_path):
    flags = ["--data", data, *TINY, "--output", tmp_path / "run", "--no-variable-bptt"]
    text = printed(run_command("train", *flags, "--bptt", 10, "--batch-size", 4, "--log-every", 5))
    actual = re.findall(r"^Epoch 1/1, batch (\d+)/(\d+): loss \d", text, re.MULTILINE)
    count = int(actual[0][1])
    assert [int(batch) for batch, _ in actual] == list(range(5, count + 1, 5)) and count > 10


def test_finished_run_is_not_overwritten(trained, data, tmp_path):
    run = shutil.copytree(trained[0], tmp_path / "run")
    before = contents(run)
    refused(run_command("train", "--data", data, *DEBUG, "--output", run), "exists already")
    assert contents(run) == before


def test_help_lists_the_flags_of_the_model_without_keras():
    code = (
        "import runpy, sys\n"
        "try: runpy.run_module('keras_onlstm', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print(*({'keras', 'tensorflow', 'jax', 'torch'} & sys.modules.keys()), '-')\n"
    )
    for model, flag, other in (
        ("language_model", "--chunk-size", "--slots"),
        ("prpn", "--slots", "--chunk-size"),
    ):
        process = subprocess.run(
            [sys.executable, "-c", code, "train", "--model", model, "--help"],
            capture_output=True, text=True, env=environment(),
        )  # fmt: skip
        assert process.stdout.splitlines()[-1] == "-", process
        assert flag in process.stdout and other not in process.stdout


def test_package_runs_as_a_module():
    command = [sys.executable, "-m", "keras_onlstm", "--version"]
    process = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert (process.returncode, process.stdout) == (0, f"keras-onlstm {__version__}\n")
