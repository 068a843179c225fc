"""What a run's directory holds: one place writes it, one place reads it."""

import json

import pytest

from keras_onlstm.training import Setting
from keras_onlstm.training.architectures import ARCHITECTURES
from keras_onlstm.training.language_model_settings import PRPN_SETTINGS, SETTINGS
from keras_onlstm.runs.directory import (
    Configuration,
    Experiment,
    check_new,
    has_begun,
    origin,
    read_config,
    running,
)
from keras_onlstm.utils.reading import SEEDS, Choice, Integer

pytestmark = pytest.mark.backend("tensorflow")  # nothing here depends on it

PRESETS = {"small": {"units": 20, "tied": True}, "large": {"units": 900, "tied": True}}
EXPERIMENT = Experiment(
    "examples/some_training.py",
    kinds={
        "preset": Choice(tuple(PRESETS)),
        "recurrent": Choice(("onlstm", "lstm")),
        "data": (str, None),
        "seed": SEEDS,
        "max_words": (Integer(3), None),
        "characters": bool,
    },
    defaults={
        "preset": "small", "recurrent": "onlstm", "data": None, "seed": 0, "max_words": None,
        "characters": False,
    },
    settings={"units": Setting(Integer(1), "size"), "tied": Setting(bool, "one matrix for two")},
    presets=PRESETS,
    later=("max_words", "characters"),
)  # fmt: skip
OLD = {"preset": "large", "recurrent": "lstm", "data": None, "seed": 3}


def options_of(*arguments):
    parser = EXPERIMENT.parser("Trains.", "runs/some")
    for name in ("--recurrent", "--data"):
        parser.add_argument(name)
    parser.add_argument("--max-words", type=int)
    parser.add_argument("--characters", action="store_true", default=None)
    return parser.parse_args(list(map(str, arguments)))


def write(directory, **content):
    (directory / "config.json").write_text(json.dumps(content))


def test_a_new_run(tmp_path):
    output = tmp_path / "run"
    found = EXPERIMENT.configuration(options_of("--output", output))
    assert found.arguments == EXPERIMENT.defaults and found.values == PRESETS["small"]
    start = "python examples/some_training.py --preset"
    assert found.command == f"{start} small --recurrent onlstm --seed 0"
    given = ["--preset", "large", "--seed", 7, "--data", tmp_path / "ptb", "--characters"]
    given += ["--max-words", 9, "--set", "tied=false", "units=900"]
    found = EXPERIMENT.configuration(options_of("--output", output, *given))
    expected = f"{start} large --recurrent onlstm --seed 7 --data ptb --max-words 9 --characters"
    assert found.command == f"{expected} --set tied=false"
    assert found.values == {"units": 900, "tied": False}
    assert found.record == {"units": 900, "tied": False, "recurrent": "onlstm", "seed": 7}
    with running(output, found):
        assert EXPERIMENT.stored(output) == found
        assert read_config(output)["versions"]["backend"] == "tensorflow"
        assert not has_begun(output)
    (output / "checkpoint.npz").touch()
    assert has_begun(output) and not has_begun(output, ["checkpoint.npz"])
    # The run goes on with that, and with nothing else.
    assert EXPERIMENT.configuration(options_of("--output", output, "--resume", *given)) == found
    for other, said in (
        (["--seed", 8], "was started with --seed 7, not 8. Leave --seed out"),
        (["--max-words", 4], "was started with --max-words 9, not 4. Leave --max-words out"),
        (["--set", "units=5"], "was started with units 900, not 5. Leave --set units out"),
    ):
        with pytest.raises(ValueError, match=said):
            EXPERIMENT.configuration(options_of("--output", output, "--resume", *other))
    with pytest.raises(FileExistsError, match="Add --resume to go on with it"):
        EXPERIMENT.configuration(options_of("--output", output))
    with pytest.raises(FileExistsError, match="Add --resume"), running(output, found, False):
        pass
    for begin in (check_new, lambda directory: running(directory, found).__enter__()):
        with pytest.raises(FileExistsError, match=r"exists already\. Move it away, or give"):
            begin(output)
    assert EXPERIMENT.stored(output) == found


def test_what_does_not_shape_a_run_may_change(tmp_path):
    kinds, defaults = ({**old, "hosts": new} for old, new in
                       ((EXPERIMENT.kinds, Integer(1)), (EXPERIMENT.defaults, 1)))  # fmt: skip
    experiment = EXPERIMENT._replace(kinds=kinds, defaults=defaults, free=("hosts",))
    begun = Configuration({**OLD, "max_words": None, "characters": False, "hosts": 2}, {
        "units": 900, "tied": True})  # fmt: skip
    write(tmp_path, **begun._asdict())
    for given in (None, 4):
        options = options_of("--output", tmp_path, "--resume")
        options.hosts = given
        found = experiment.configuration(options)
        assert found.arguments == begun.arguments | {"hosts": given or 2}
        assert found.record == begun.record
    with pytest.raises(ValueError, match="was started with --hosts 2, not 4"):
        experiment._replace(free=()).configuration(options)


def test_a_model_with_values_of_its_own(tmp_path):
    """Its runs say so, others are as they were before there was a choice."""
    variant = EXPERIMENT._replace(
        kinds={"model": Choice(("deep",)), "preset": Choice(("huge",)), "seed": SEEDS},
        defaults={"model": "deep", "preset": "huge", "seed": 0},
        settings={"slots": Setting(Integer(1), "what is remembered")},
        presets={"huge": {"slots": 15}},
        later=(),
    )
    both = EXPERIMENT._replace(variants={"deep": variant})
    parser = both.parser("Trains.", "runs/some")
    for name in ("--model", "--recurrent", "--data", "--max-words", "--characters"):
        parser.add_argument(name)
    text = parser.format_help()
    assert "units: size (20, 900)" in text
    assert "--model deep, values for --set, with those of huge:" in text and "(15)" in text

    def configured(*given):
        return both.configuration(parser.parse_args(["--output", str(tmp_path / "run"), *given]))

    assert configured() == EXPERIMENT.configuration(options_of("--output", tmp_path / "run"))
    deep = ["--model", "deep", "--preset", "huge"]
    found = configured(*deep, "--set", "slots=3")
    assert found.arguments == {"model": "deep", "preset": "huge", "seed": 0}
    assert found.values == {"slots": 3} and found.record == {"slots": 3, "seed": 0}
    command = "--model deep --preset huge --seed 0 --set slots=3"
    assert found.command == f"python examples/some_training.py {command}"
    for given, said in (
        (["--model", "deep", "--preset", "small"], "--preset small: --model deep has none"),
        ([*deep, "--recurrent", "lstm"], "--recurrent is for another --model"),
        ([*deep, "--set", "units=3"], "there is no value 'units'"),
    ):
        with pytest.raises(ValueError, match=said):
            configured(*given)
    with running(tmp_path / "run", found):
        pass
    assert both.stored(tmp_path / "run") == found == configured("--resume", "--set", "slots=3")
    with pytest.raises(ValueError, match="no arguments of this script"):
        EXPERIMENT.stored(tmp_path / "run")
    write(tmp_path, arguments=OLD)
    with pytest.raises(ValueError, match=r"was not started with --model deep\. Leave --model out"):
        both.configuration(parser.parse_args(["--output", str(tmp_path), "--resume", *deep]))


def test_runs_of_earlier_versions(tmp_path):
    """They have neither values nor a command, and fewer arguments."""
    write(tmp_path, arguments=OLD)
    found = EXPERIMENT.stored(tmp_path)
    assert found.arguments == OLD | {"max_words": None, "characters": False}
    assert found.values == PRESETS["large"] and found.command is None
    assert origin(tmp_path) == {}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "arguments is missing. Name the --output directory of a run"),
        ({"arguments": OLD | {"brown": True}}, "no arguments of this script: .*'brown'. Name"),
        ({"arguments": OLD, "values": {"units": 3}}, "tied is missing. Restore it, or start"),
        ({"arguments": OLD, "values": {**PRESETS["small"], "unit": 3}}, "'unit'. Is it units"),
        ({"arguments": OLD, "values": 3}, "values is an object or null, not 3. Restore it"),
    ],
)
def test_what_is_no_record_of_a_run(tmp_path, content, said):
    write(tmp_path, **content)
    with pytest.raises(ValueError, match=said) as caught:
        EXPERIMENT.stored(tmp_path)
    assert str(caught.value).startswith(str(tmp_path / "config.json"))


def test_where_a_model_comes_from(tmp_path):
    write(tmp_path, arguments=OLD, command="python a.py --preset large")
    scores = {"parameters": 7, "validation_perplexity": 9.5, "test_perplexity": 8.5}
    (tmp_path / "results.json").write_text(json.dumps({**scores, "recurrent": "lstm"}))
    assert origin(tmp_path) == {"command": "python a.py --preset large", **scores}
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(ValueError, match=r"results\.json: parameters is missing\. Evaluate the"):
        origin(tmp_path)


def test_ctrl_c_says_how_to_go_on_where_that_can_be(tmp_path):
    for resume, said in ((None, ()), (False, ("The same command with --resume goes on.",))):
        output = tmp_path / str(resume)
        with (
            pytest.raises(KeyboardInterrupt) as caught,
            running(output, Configuration({"seed": 7}, {}), resume),
        ):
            raise KeyboardInterrupt
        assert caught.value.args == said


def test_models_are_in_the_record_of_their_run():
    """Whatever shapes a language model is a value, and so in the checkpoint."""
    made = {"language_model": SETTINGS, "prpn": PRPN_SETTINGS}
    for name, settings in made.items():
        assert ARCHITECTURES[name].settings.keys() < settings.keys()
    configuration = Configuration({"recurrent": "lstm", "seed": 1, "devices": 2}, {"units": 3})
    assert configuration.record == {"units": 3, "recurrent": "lstm", "seed": 1}
