"""Settings of a run: flags, presets, files, and which changes a resumed run rejects."""

import json
from dataclasses import dataclass, fields

import pytest

from helpers.tiny_runs import bits, make_trainer
from keras_onlstm.runs.config import Config, option, rate, run_parser
from keras_onlstm.runs.directory import running
from keras_onlstm.runs.language_model import LanguageModelConfig, PRPNConfig
from keras_onlstm.runs.pair_classifier import PairClassifierConfig
from keras_onlstm.runs.tree_lstm import TreeLSTMConfig
from keras_onlstm.training import load_checkpoint, save_checkpoint

pytestmark = pytest.mark.backend("tensorflow")  # independent of the backend

CONFIGS = [LanguageModelConfig, PRPNConfig, TreeLSTMConfig, PairClassifierConfig]


@dataclass(frozen=True, kw_only=True)
class TinyConfig(Config):
    model, program = "tiny", "train.py"
    presets = {"small": {}, "large": {"units": 900, "tied": False}}  # noqa: RUF012
    free = ("devices",)

    preset: str = option("small", "Starting values.", "run", choices=("small", "large"))
    data: tuple[str, ...] = option((), "Files.", "data")
    max_words: int | None = option(None, "Words to know.", "data", 3)
    vectors: str | None = option(None, "File.", "data")
    units: int = option(20, "Size of the layer.", "model", 1)
    tied: bool = option(True, "One matrix for two.", "model")
    dropout: float = rate(0.1, "Share dropped.")
    optimizer: str = option("adam", "Of the training.", "training", choices=("sgd", "adam"))
    devices: int = option(1, "Devices.", "training", 1)

    def check(self) -> None:
        if self.optimizer == "sgd" and not self.tied:
            raise ValueError("--no-tied: goes with --optimizer adam")


def parse(*arguments, configs=(TinyConfig,)):
    arguments = list(map(str, arguments))
    return run_parser(configs, "train.py", "Trains.", "runs/new", arguments).parse_args(arguments)


def configured(*arguments, **kwargs):
    options = parse(*arguments, **kwargs)
    return options.config_class.from_options(options)


@pytest.fixture
def output(tmp_path):
    return tmp_path / "run"


def refused(capsys, *arguments, **kwargs):
    """The output of an invalid command line."""
    with pytest.raises(SystemExit) as ended:
        parse(*arguments, **kwargs)
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_every_setting_has_a_flag(output):
    given = ["--units", 30, "--no-tied", "--dropout", "5e-1", "--data", "a", "b", "--seed", 7]
    found = configured("--output", output, *given, "--max-words", 9)
    expected = {"units": 30, "tied": False, "dropout": 0.5, "data": ("a", "b"), "seed": 7}
    assert found == TinyConfig(**expected, max_words=9)
    assert configured("--output", output) == TinyConfig()
    whole = configured("--output", output, "--dropout", "0", "--max-words", "none")
    assert (whole.dropout, type(whole.dropout), whole.max_words) == (0.0, float, None)


def test_flags_override_the_file_and_the_file_overrides_the_preset(output, tmp_path):
    assert TinyConfig.from_preset("large", seed=3) == TinyConfig(
        preset="large", units=900, tied=False, seed=3
    )
    (tmp_path / "values.json").write_text('{"preset": "large", "units": 7, "data": ["a"]}')
    (tmp_path / "values.toml").write_text('preset = "large"\nunits = 7\ndata = ["a"]\n')
    for name in ("values.json", "values.toml"):
        file = ["--output", output, "--config", tmp_path / name]
        expected = TinyConfig(preset="large", units=7, tied=False, data=("a",))
        assert configured(*file) == expected
        assert configured(*file, "--units", 8, "--tied") == TinyConfig(
            preset="large", units=8, data=("a",)
        )
        assert configured(*file, "--preset", "small") == TinyConfig(units=7, data=("a",))


def test_config_json_starts_another_run(output, tmp_path):
    first = TinyConfig.from_preset("large", units=30)
    with running(output, first.to_json()):
        pass
    found = configured("--output", tmp_path / "other", "--config", output / "config.json")
    assert found == first


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", '{"unit": 3}', "unknown setting 'unit'"),
        ("a.json", '{"units": 3', "Give a JSON or TOML file of values"),
        ("a.json", "[3]", "an object, not"),
        ("a.json", '{"model": "other", "units": 3}', "other.*tiny"),
        ("a.toml", "units = ", "Give a JSON or TOML file of values"),
        ("a.toml", None, "cannot be read"),
    ],
)
def test_invalid_config_files_are_reported(output, tmp_path, name, text, message):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises((ValueError, OSError), match=message) as caught:
        configured("--output", output, "--config", path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--units", "2.5"], "--units must be an integer, 1 or above, not '2.5'"),
        (["--units", "0"], "--units must be an integer, 1 or above, not 0"),
        (["--dropout", "1.5"], "--dropout must be a number from 0 to 0.9999, not 1.5"),
        (["--dropout", "nan"], "--dropout must be a number"),
        (["--max-words", "2"], "--max-words must be an integer, 3 or above"),
        (["--optimizer", "adm"], "--optimizer must be 'sgd' or 'adam', not 'adm'"),
        (["--preset", "huge"], "--preset must be 'small' or 'large', not 'huge'"),
        (["--seed", "-1"], "--seed must be an integer from 0 to"),
        (["--no-tied", "--optimizer", "sgd"], "--no-tied: goes with --optimizer adam"),
    ],
)
def test_invalid_values_are_reported_with_flag_and_range(output, given, message):
    with pytest.raises(ValueError) as caught:
        configured("--output", output, *given)
    assert str(caught.value).startswith(message)


def test_unknown_flags_suggest_the_nearest(capsys):
    assert "unexpected argument --unit: did you mean --units?" in refused(capsys, "--unit", 3)
    assert "--zzzzzz: unknown" in refused(capsys, "--zzzzzz")


def test_help_shows_groups_and_defaults():
    text = run_parser([TinyConfig], "train.py", "Trains.", "runs/new", []).format_help()
    assert "Of the training. (default: adam)" in text and "--tied, --no-tied" in text
    assert [line for line in text.splitlines() if line.endswith(":")][-3:] == [
        "data:", "model:", "training:",
    ]  # fmt: skip


def test_resume_rejects_changed_values(output, tmp_path):
    config = configured(
        "--output", output, "--units", 30, "--data", tmp_path / "ptb", "--seed", 7, "--devices", 2
    )
    with running(output, config.to_json()):
        pass
    resume = ["--output", output, "--resume"]
    assert configured(*resume) == TinyConfig.load(output) == config
    assert configured(*resume, "--units", 30, "--seed", 7, "--preset", "small") == config
    free = configured(*resume, "--devices", 4)
    assert free.devices == 4 and free.record() == config.record()
    for flags, message in (
        (["--units", 31], "was started with --units 30, not 31. Leave --units out to resume"),
        (["--no-tied"], "was started with --tied True, not False"),
        (["--preset", "large"], "was started with --preset small, not large"),
        (["--data", "wiki"], "was started with --data .*ptb.*, not .*wiki"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            configured(*resume, *flags)
        assert str(caught.value).startswith(f"{output}: ")
    with pytest.raises(FileExistsError, match="Add --resume to resume it"):
        configured("--output", output)
    with pytest.raises(FileNotFoundError):
        configured("--output", tmp_path / "none", "--resume")


def test_command_record_and_config_json():
    config = TinyConfig(data=("/home/me/ptb", "b"), vectors="x/y.txt", devices=2, max_words=9)
    command = "train.py --preset small --seed 0 --data ptb b --max-words 9 --vectors y.txt"
    assert config.command() == f"{command} --devices 2"
    large = TinyConfig.from_preset("large", tied=True, optimizer="sgd")
    assert large.command() == "train.py --preset large --seed 0 --tied --optimizer sgd"
    assert config.group("model") == {"units": 20, "tied": True, "dropout": 0.1}
    # Without paths, settings that may change, and the preset, whose values are all recorded.
    assert config.record() == {
        "seed": 0, "max_words": 9, "units": 20, "tied": True, "dropout": 0.1, "optimizer": "adam",
    }  # fmt: skip
    stored = json.loads(json.dumps(config.to_json()))
    assert (stored.pop("model"), stored.pop("command")) == ("tiny", config.command())
    assert stored == {one.name: stored[one.name] for one in fields(config)}
    assert TinyConfig(**stored) == config


@pytest.mark.parametrize("config", CONFIGS)
def test_command_of_each_preset_round_trips(config, output):
    for preset in config.presets:
        values = config.from_preset(preset)
        words = values.command().removeprefix(config.program).split()
        assert words[:2] == ["--preset", preset]
        model = ["--model", config.model]
        assert configured("--output", output, *model, *words, configs=CONFIGS) == values
        assert json.loads(json.dumps(values.record())) == values.record()


def test_model_flag_chooses_among_several_configs(output, capsys):
    both = {"configs": (LanguageModelConfig, PRPNConfig)}
    assert type(configured("--output", output, **both)) is LanguageModelConfig
    found = configured("--output", output, "--model", "prpn", "--slots", 7, **both)
    assert found == PRPNConfig(slots=7)
    assert "--slots: belongs to --model prpn" in refused(capsys, "--slots", 7, **both)
    assert "choose one of language_model, prpn" in refused(capsys, "--model", "gru", **both)
    with running(output, found.to_json()):
        pass
    assert configured("--output", output, "--resume", **both) == found
    assert configured("--output", output, "--resume", "--slots", 7, **both) == found
    other = refused(capsys, "--output", output, "--resume", "--model", "language_model", **both)
    assert f"{output}: was started with --model prpn, not language_model" in other
    with pytest.raises(ValueError, match=r"prpn.*language_model"):
        LanguageModelConfig.load(output)


@pytest.mark.parametrize(
    ("config", "values", "message"),
    [
        (LanguageModelConfig, {"devices": 9, "batch_size": 8}, "--devices 9: the batch has only 8"),
        (PRPNConfig, {"weight_decay": 0.1}, "--weight-decay 0.1: needs --optimizer adamw, adam_l2"),
        (PRPNConfig, {"test_sentences": True}, "--test-sentences: needs --sentences"),
        (
            LanguageModelConfig,
            {"max_words": 9, "init_from": "a"},
            "--max-words: not with --init-from",
        ),
        (
            TreeLSTMConfig,
            {"left_dependents": True, "trees": "chain"},
            "--left-dependents: needs --trees",
        ),
        (TreeLSTMConfig, {"data": ("treebank",)}, "--data takes nltk, or three CoNLL files"),
        (TreeLSTMConfig, {"data": ("a", "b")}, "--data takes nltk, or three CoNLL files"),
    ],
)
def test_contradicting_values_are_rejected(config, values, message):
    with pytest.raises(ValueError) as caught:
        config(**values)
    assert str(caught.value).startswith(message)


def write(directory, content):
    directory.mkdir(exist_ok=True)
    (directory / "config.json").write_text(json.dumps(content))


EARLIER = {"preset": "smoke", "recurrent": "lstm", "data": None, "seed": 3}


def test_runs_that_stored_only_a_preset_load(output):
    """Only the name of the preset."""
    write(output, {"arguments": EARLIER})
    expected = LanguageModelConfig.from_preset("debug", recurrent="lstm", seed=3)
    assert LanguageModelConfig.load(output) == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "arguments is missing"),
        ({"arguments": EARLIER | {"colour": 3}}, "unknown setting 'colour'"),
        ({"arguments": EARLIER, "values": {"units": 3}}, "is missing"),
        ({"arguments": EARLIER, "values": {"unit": 3}}, "unknown setting 'unit'"),
        ({"arguments": EARLIER, "values": 3}, "values must be an object or null, not 3"),
        ({"model": "language_model", "units": 3}, "is missing"),
    ],
)
def test_damaged_config_json_is_reported(output, content, message):
    write(output, content)
    with pytest.raises(ValueError, match=message) as caught:
        LanguageModelConfig.load(output)
    assert str(caught.value).startswith(str(output / "config.json"))
    assert "Name the --output directory" in str(caught.value)


VALUES = {"units": 20, "initialization": "scaled", "rate": 0.1}


def test_checkpoint_with_another_record_is_rejected(tmp_path):
    make_trainer(tmp_path, record=VALUES).run(max_batches=2)
    for name, other in {"units": 21, "initialization": None}.items():
        trained = make_trainer(tmp_path, seed=9, record=VALUES | {name: other})
        before = bits(trained.model)
        with pytest.raises(ValueError, match=f"started with {name} {VALUES[name]}, not {other}"):
            trained.resume()
        assert bits(trained.model) == before
    with pytest.raises(ValueError, match="started with units 20, not None"):
        make_trainer(tmp_path).resume()
    survivor = make_trainer(tmp_path, seed=9, record=VALUES)
    survivor.resume()
    assert survivor.progress.batch == 2 and survivor.progress.record == VALUES


@pytest.mark.parametrize("stored", [None, {"units": 20}])
def test_checkpoints_with_fewer_or_no_recorded_values_resume(tmp_path, stored):
    begun = make_trainer(tmp_path)
    begun.run(max_batches=2)
    path = tmp_path / "checkpoint.npz"
    state = load_checkpoint(path, begun.model)
    del state["record"]
    save_checkpoint(path, begun.model, state if stored is None else {**state, "record": stored})
    survivor = make_trainer(tmp_path, record=VALUES)
    survivor.resume()
    assert survivor.progress.batch == 2 and survivor.progress.record == VALUES
