"""examples/language_modeling.py: what a run leaves, and one line for every mistake."""

import csv
import json
import math
import re
import shutil
import signal
import time
from importlib.util import find_spec

import keras
import numpy as np
import pytest
from keras import ops

import commands
from checks import NO_DROPOUT
from commands import EXAMPLES, contents, ours
from keras_onlstm.datasets import treebank
from keras_onlstm.models import LanguageModel, PairClassifier
from keras_onlstm.models.eight_bit import load_eight_bit
from keras_onlstm.training import corpora

# On JAX every process compiles for minutes; `.ci/run` runs the script there, and on PyTorch, once.
pytestmark = pytest.mark.backend("tensorflow")

SCRIPT = EXAMPLES / "language_modeling.py"
SMOKE = ["--preset", "smoke"]
COMMAND = "keras-onlstm"
COMPACT = ["compact", "--output", "x.npz", "--model"]
PLOTS = {"perplexity.png", "perplexity.svg"}


@pytest.fixture(scope="module")
def script():
    """The example as a module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        import language_modeling

        yield language_modeling


@pytest.fixture
def run(script, monkeypatch, capsys):
    """Runs the script's command line in this process: (exit status, stdout, stderr)."""
    return commands.runner(SCRIPT, script, monkeypatch, capsys)


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs `keras-onlstm` in this process."""
    return commands.command_runner(monkeypatch, capsys)


def refused(result, *parts, script=SCRIPT):
    commands.refused(script, result, *parts)


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """A finished run, made by the script as a process of its own. Not to be changed."""
    directory = tmp_path_factory.mktemp("smoke") / "run"
    process = commands.start(SCRIPT, *SMOKE, "--output", directory)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert ours(errors) == []
    return directory, output


@pytest.fixture
def copied(smoke, tmp_path):
    """A copy of the finished run."""
    return shutil.copytree(smoke[0], tmp_path / "run")


@pytest.fixture
def data(tmp_path):
    """A corpus of a few hundred words."""
    directory = tmp_path / "data"
    directory.mkdir()
    draw = np.random.default_rng(0).choice
    for part, lines in (("train", 80), ("valid", 12), ("test", 12)):
        text = "".join(f"{' '.join(draw(list('abcdefgh'), 7))}\n" for _ in range(lines))
        (directory / f"{part}.txt").write_text(text)
    return directory


def weights(directory):
    model = keras.saving.load_model(directory / "best.keras", compile=False, safe_mode=True)
    return [ops.convert_to_numpy(weight).tobytes() for weight in model.weights]


def epochs(directory):
    with open(directory / "metrics.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        del row["seconds"]
    return rows


def assert_same_run(directory, other):
    assert weights(directory) == weights(other)
    assert epochs(directory) == epochs(other)
    assert (directory / "results.json").read_bytes() == (other / "results.json").read_bytes()


def test_a_run_leaves_its_files(smoke):
    directory, output = smoke
    wanted = {"best.keras", "checkpoint.npz", "config.json", "metrics.csv", "metrics.json"}
    wanted |= {"results.json", "vocabulary.txt", ".lock"}
    wanted |= PLOTS if find_spec("matplotlib") else set()
    wanted |= {"tensorboard"} if find_spec("tensorboard") else set()
    assert {path.name for path in directory.iterdir()} == wanted
    rows = json.loads((directory / "metrics.json").read_text())["epochs"]
    assert [row["epoch"] for row in rows] == [1, 2]
    # 13 words and <eos> at random have perplexity 14: it has learnt something.
    assert rows[1]["val_perplexity"] < rows[0]["val_perplexity"] < 13
    results = json.loads((directory / "results.json").read_text())
    best = min(row["val_perplexity"] for row in rows)
    assert results["validation_perplexity"] == pytest.approx(best, rel=1e-5)
    assert f"{results['test_perplexity']:.2f}" in output and " tokens in " in output
    assert "56.17" in output  # what was published, beside it


def test_perplexity_is_that_of_the_model(smoke, script):
    """The test text read at once, without windows."""
    model = keras.saving.load_model(smoke[0] / "best.keras", compile=False, safe_mode=True)
    arguments = script.EXPERIMENT.stored(smoke[0]).arguments
    corpus = script.load_corpus(arguments, smoke[0], model.vocabulary)
    logits = model.predict_on_batch(corpus.test[None, :-1])[0].astype("float64")
    logits -= logits.max(-1, keepdims=True)
    scores = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    loss = -scores[np.arange(len(corpus.test) - 1), corpus.test[1:]].mean()
    results = json.loads((smoke[0] / "results.json").read_text())
    assert results["test_loss"] == pytest.approx(loss, abs=1e-5)
    assert results["test_perplexity"] == pytest.approx(math.exp(loss), rel=1e-5)


def test_evaluating_again_gives_the_same_results(run, copied):
    before = contents(copied)
    (copied / "results.json").unlink()
    status, output, errors = run("--evaluate", copied)
    assert (status, ours(errors)) == (0, [])
    after = contents(copied)
    assert after.keys() == before.keys()
    assert {k for k in before if before[k] != after[k]} <= PLOTS
    assert "Perplexity" in output


def test_resuming_a_finished_run_goes_on_to_the_evaluation(run, copied):
    before = contents(copied)
    status, output, errors = run("--output", copied, "--resume")
    assert (status, ours(errors)) == (0, [])
    assert "Epoch" not in output and "Perplexity" in output
    assert {k: v for k, v in contents(copied).items() if k not in PLOTS} == {
        k: v for k, v in before.items() if k not in PLOTS
    }


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_kill_9_and_resume(run, smoke, tmp_path):
    directory = tmp_path / "run"
    process = commands.start(SCRIPT, *SMOKE, "--output", directory)
    while process.poll() is None and not (directory / "checkpoint.npz").exists():
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    status, _, errors = run("--output", directory, "--resume")
    assert (status, ours(errors)) == (0, [])
    assert_same_run(directory, smoke[0])


def test_stopped_within_an_epoch_and_resumed(run, smoke, tmp_path):
    steps = 30  # in the second epoch
    directory = tmp_path / "run"
    status, output, errors = run(*SMOKE, "--output", directory, "--steps", steps)
    assert (status, ours(errors)) == (0, []) and "Perplexity" not in output
    with np.load(directory / "checkpoint.npz") as file:
        state = json.loads(file["state.json"].tobytes())
    assert state["batch"] > 0 and len(state["history"]) == 1
    status, _, errors = run("--output", directory, "--resume")
    assert (status, ours(errors)) == (0, [])
    assert_same_run(directory, smoke[0])


def test_a_run_killed_before_its_first_checkpoint_resumes(run, smoke, tmp_path):
    directory = tmp_path / "run"
    directory.mkdir()
    shutil.copy(smoke[0] / "config.json", directory)
    status, _, errors = run("--output", directory, "--resume")
    assert (status, ours(errors)) == (0, [])
    assert_same_run(directory, smoke[0])


def test_a_corpus_of_the_users(run, data, tmp_path, monkeypatch):
    monkeypatch.setattr(corpora, "MAPPED", 100)  # as if it were large
    output = tmp_path / "run"
    status, text, errors = run(*SMOKE, "--data", data, "--output", output, "--recurrent", "lstm")
    assert (status, ours(errors)) == (0, [])
    assert (output / "vocabulary.txt").read_text().split() == [
        "<eos>",
        "<unk>",
        *sorted_words(data),
    ]
    assert (output / "ids" / "train.ids").stat().st_size == 4 * 80 * 8
    assert "640 tokens, 10 words" in text and text.startswith("Reading") and "LSTM" in text
    ids = (output / "ids" / "train.ids").stat()
    status, text, errors = run("--evaluate", output, "--data", data)
    assert (status, ours(errors)) == (0, []) and "LSTM" in text
    assert (output / "ids" / "train.ids").stat() == ids  # not written again


def sorted_words(data):
    words = (data / "train.txt").read_text().split()
    return sorted(set(words), key=lambda word: (-words.count(word), word))


def test_characters_and_a_limit(run, command, data, tmp_path):
    output = tmp_path / "run"
    arguments = ["--data", data, "--output", output, "--characters", "--max-words", 6]
    status, text, errors = run(*SMOKE, *arguments)
    assert (status, ours(errors)) == (0, [])
    words = (output / "vocabulary.txt").read_text().split()
    assert len(words) == 6 and words[:3] == ["<eos>", "<unk>", "_"]
    assert f"{80 * 14:,} tokens" in text
    status, text, _ = command("generate", "--model", output, "a b", "--length", 20)
    assert status == 0 and text.splitlines()[-1].startswith("a_b")
    config = json.loads((output / "config.json").read_text())
    assert config["command"].endswith("--seed 0 --data data --max-words 6 --characters")


def test_sentences_one_by_one(run, script, data, tmp_path, monkeypatch):
    """Without those on which trees are scored, or with them; resumed to the bit."""
    sentences = [line.split() for line in (data / "train.txt").read_text().splitlines()]
    held_out = [*sentences[10:15], list("hhhh")]
    sample = [treebank.ParsedSentence(tokens, None) for tokens in held_out]
    monkeypatch.setattr(script.treebank, "load", lambda: sample)
    arguments = [*SMOKE, "--model", "prpn", "--data", data, "--sentences"]
    arguments += ["--set", "num_layers=1", "epochs=1", "--output"]
    for name, options, told in (
        ("without", [], "75 sentences, 5 fewer: without those of NLTK's sample"),
        ("with", ["--test-sentences", "--steps", 1], "81 sentences, among them those of NLTK's"),
    ):
        status, text, errors = run(*arguments, tmp_path / name, *options)
        assert (status, ours(errors)) == (0, []) and told in text
    results = json.loads((tmp_path / "without" / "results.json").read_text())
    model = keras.saving.load_model(tmp_path / "without" / "best.keras")
    lines = [line.split() for line in (data / "test.txt").read_text().splitlines()]
    expected = -np.concatenate(model.score(lines)).mean()
    np.testing.assert_allclose(results["test_loss"], expected, rtol=1e-5)
    assert run(*arguments, tmp_path / "again", "--steps", 3)[0] == 0
    assert run("--output", tmp_path / "again", "--resume")[0] == 0
    assert weights(tmp_path / "again") == weights(tmp_path / "without")
    refused(run(*SMOKE, "--test-sentences"), "--test-sentences", "--sentences")


def test_half_precision(run, tmp_path):
    """Training computes in bfloat16 and resumes to the same bits; evaluation is in float32."""
    half = [*SMOKE, "--precision", "mixed_bfloat16", "--output"]
    for name, options in (("whole", []), ("stopped", ["--steps", 30])):
        assert run(*half, tmp_path / name, *options)[0] == 0
    assert run("--output", tmp_path / "stopped", "--resume")[0] == 0
    assert_same_run(tmp_path / "stopped", tmp_path / "whole")
    model = keras.saving.load_model(tmp_path / "whole" / "best.keras", compile=False)
    assert {layer.dtype_policy.name for layer in model.recurrent_layers} == {"float32"}
    results = json.loads((tmp_path / "whole" / "results.json").read_text())
    rows = epochs(tmp_path / "whole")
    best = min(float(row["val_perplexity"]) for row in rows)
    assert results["validation_perplexity"] == pytest.approx(best, rel=1e-5)
    assert float(rows[1]["loss"]) < float(rows[0]["loss"])


def test_half_precision_computes_the_loss_of_single_precision(run, tmp_path):
    """Without dropout, and with weights that do not move, only the rounding of bfloat16 is left."""
    still = [f"{name}=0" for name in NO_DROPOUT] + ["learning_rate=1e-20", "epochs=1"]
    losses = []
    for precision in ("float32", "mixed_bfloat16"):
        options = ["--precision", precision, "--output", tmp_path / precision]
        assert run(*SMOKE, *options, "--set", *still)[0] == 0
        losses.append(float(epochs(tmp_path / precision)[0]["loss"]))
    # bfloat16 has 8 significant bits. Rounding errors of single words largely cancel in the mean.
    assert 1e-6 < abs(losses[1] - losses[0]) < 2**-8 * losses[0]


# --- Use -----------------------------------------------------------------------------------------


def test_generating(command, smoke):
    before = contents(smoke[0])

    def words(*options):
        status, output, errors = command("generate", "--model", smoke[0], "( a", *options)
        assert (status, ours(errors)) == (0, [])
        return output.split()

    first = words("--seed", 3, "--length", 12)
    assert first[:2] == ["(", "a"] and len(first) <= 14
    assert words("--seed", 3, "--length", 12) == first
    assert len({tuple(words("--seed", n)) for n in range(4)}) == 4
    assert "<eos>" not in first and "<unk>" not in first
    # The likeliest word alone leaves nothing to chance, and nearly so does a low temperature.
    greedy = words("--top-k", 1, "--seed", 1, "--length", 12)
    assert greedy == words("--temperature", 1e-4, "--seed", 2, "--length", 12)
    assert contents(smoke[0]) == before


def test_generating_stops_at_the_end(command, smoke, monkeypatch):
    def ends(model, *args, **kwargs):
        found = real(model, *args, **kwargs)
        return found._replace(logits=1000.0 * ops.one_hot(ops.zeros_like(args[0]), 13))

    real = LanguageModel.__call__
    monkeypatch.setattr(LanguageModel, "__call__", ends)
    status, output, _ = command("generate", "--model", smoke[0], "( a")
    assert status == 0 and output == "( a\n"


def test_unknown_words_are_named(command, smoke):
    status, output, errors = command("generate", "--model", smoke[0], "( zebra", "--length", 1)
    assert status == 0 and output.startswith("( zebra ")
    assert ours(errors) == ['Unknown words: "zebra". The model reads them as <unk>.']


def test_scoring(command, smoke, tmp_path):
    before = contents(smoke[0])
    (tmp_path / "lines.txt").write_text("( a ( and b ) )\n\na\n")
    given = ["score", "--model", smoke[0], "--file", tmp_path / "lines.txt"]
    status, output, errors = command(*given)
    assert (status, ours(errors)) == (0, [])
    model = keras.saving.load_model(smoke[0] / "best.keras", compile=False, safe_mode=True)
    ids = np.array([model.encode(["<eos>", "(", "a", "(", "and", "b", ")", ")", "<eos>"])])
    logits = ops.convert_to_numpy(model(ids[:, :-1])).astype("float64")[0]
    scores = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    total = scores[np.arange(8), ids[0, 1:]].sum()
    row = next(line for line in output.splitlines() if line.startswith("( a ( and b ) )"))
    tokens, unknown, score, perplexity = row.split()[-4:]
    assert (int(tokens), int(unknown)) == (8, 0) and float(score) == pytest.approx(total, abs=1e-3)
    assert float(perplexity) == pytest.approx(math.exp(-total / 8), abs=0.01)
    assert re.search(r"10 tokens, perplexity \d", output)
    assert contents(smoke[0]) == before


@pytest.fixture
def formulas(script, tmp_path):
    """The corpus that a smoke run draws."""
    (tmp_path / "formulas").mkdir()
    script.write_formulas(tmp_path / "formulas")
    return tmp_path / "formulas"


def test_a_compact_model(command, smoke, formulas, tmp_path):
    before = contents(smoke[0])
    path = tmp_path / "model.npz"
    given = ["compact", "--model", smoke[0], "--data", formulas]
    status, output, errors = command(*given, "--output", path)
    assert (status, ours(errors)) == (0, [])
    model, about = load_eight_bit(path)
    results = json.loads((smoke[0] / "results.json").read_text())
    assert about["test_perplexity"] == results["test_perplexity"]
    assert about["command"].endswith("--preset smoke --recurrent onlstm --seed 0")
    exact, rounded = map(float, re.findall(r"perplexity (\S+), with 8 bits (\S+)", output)[0])
    assert exact == pytest.approx(results["validation_perplexity"], abs=0.01)
    assert abs(rounded - exact) < 0.1
    assert len(model.score(["( a"])[0]) == 3
    assert contents(smoke[0]) == before
    refused(command(*given, "--output", tmp_path / "model.h5"), "model.h5", ".npz", script=COMMAND)


def test_a_run_tells_the_values_that_its_preset_does_not(run, command, tmp_path):
    """And so does a compact file of its model."""
    output, path = tmp_path / "run", tmp_path / "model.npz"
    given = ["--set", "learning_rate=7.5", "jitter=false", "epochs=1"]
    assert run(*SMOKE, *given, "--output", output)[0] == 0
    assert command("compact", "--model", output, "--output", path)[0] == 0
    told = load_eight_bit(path)[1]["command"]
    assert told.endswith("--seed 0 --set epochs=1 jitter=false learning_rate=7.5")


def test_a_compact_model_of_several_runs(command, smoke, formulas, tmp_path):
    path = tmp_path / "together.npz"
    given = ["--model", smoke[0], "--model", smoke[0], "--data", formulas]
    status, output, errors = command("compact", *given, "--output", path)
    assert (status, ours(errors)) == (0, [])
    model, about = load_eight_bit(path)
    assert model.members == (3, 3) and len(about) == 2
    assert about[1]["command"].endswith("--preset smoke --recurrent onlstm --seed 0")
    (distances,) = model.distances(["( a"])
    assert np.abs(distances[:3] - distances[3:]).max() < 1e-6  # one model twice
    assert len(re.findall(r"perplexity (\S+), with 8 bits (\S+)", output)) == 2


# --- Mistakes: one line, status 2, nothing overwritten -------------------------------------------


def test_mistakes_in_a_process_of_its_own(smoke):
    before = contents(smoke[0])
    process = commands.start(SCRIPT, *SMOKE, "--output", smoke[0])
    _, errors = process.communicate(timeout=120)
    refused((process.returncode, "", errors), smoke[0], "exists already", "--resume", "--output")
    assert contents(smoke[0]) == before


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--preset", "huge"], ["--preset", "'huge'", "small"]),
        (["--seed", "-1"], ["--seed", "-1"]),
        (["--devices", "0"], ["--devices 0", "1 or above"]),
        (["--max-words", "2"], ["--max-words 2", "3 or above"]),
        (["--steps", "0"], ["--steps 0"]),
        (["--devices", "21", *SMOKE], ["--devices 21", "20 sequences"]),
        ([], ["--data DIR is needed", "ptb.train.txt"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_arguments(run, monkeypatch, tmp_path, arguments, parts):
    monkeypatch.chdir(tmp_path)
    refused(run(*arguments), *parts)
    assert contents(tmp_path) == {}


def spoil(data, how):
    path = data / "valid.txt"
    if how == "missing":
        path.unlink()
    elif how == "empty":
        path.write_text("")
    elif how == "blank":
        path.write_text("\n \n")
    elif how == "bytes":
        path.write_bytes(b"a b\n\xff\xfe c\n")
    elif how == "zeros":
        path.write_bytes(b"a\x00b\n")
    elif how == "short":
        path.write_text("a b\n")
    elif how == "short training":
        (data / "train.txt").write_text("a b\n")


@pytest.mark.parametrize(
    ("how", "parts"),
    [
        ("missing", ["no valid.txt", "train.txt"]),
        ("empty", ["valid.txt", "no words"]),
        ("blank", ["valid.txt", "no words"]),
        ("bytes", ["valid.txt", "line 2", "UTF-8"]),
        ("zeros", ["valid.txt", "line 1", "not text"]),
        ("short", ["validation", "3 tokens are too few"]),
        ("short training", ["training", "3 tokens are too few"]),
    ],
)
def test_a_corpus_that_cannot_be_used(run, data, tmp_path, how, parts):
    spoil(data, how)
    output = tmp_path / "run"
    refused(run(*SMOKE, "--data", data, "--output", output), *parts)
    assert not output.exists()


def test_a_corpus_that_is_not_there(run, tmp_path):
    missing = tmp_path / "missing"
    refused(run(*SMOKE, "--data", missing, "--output", tmp_path / "run"), missing, "train.txt")
    assert contents(tmp_path) == {}


def test_a_corpus_that_changed(run, data, tmp_path):
    output = tmp_path / "run"
    assert run(*SMOKE, "--data", data, "--output", output, "--steps", 3)[0] == 0
    before = contents(output)
    text = (data / "train.txt").read_text()
    (data / "train.txt").write_text(text.replace("a", "z"))
    refused(run("--output", output, "--resume"), output / "vocabulary.txt", "is not the vocabulary")
    (output / "vocabulary.txt").unlink()
    refused(run("--output", output, "--resume"), output / "vocabulary.txt", "no such file")
    del before["vocabulary.txt"]
    assert contents(output) == before


def test_resuming_with_other_arguments(run, copied):
    before = contents(copied)
    for option, value, stored in (
        ("--seed", "1", "0"),
        ("--preset", "paper", "smoke"),
        ("--recurrent", "lstm", "onlstm"),
        ("--data", "/nowhere", "None"),
        ("--max-words", "9", "None"),
    ):
        result = run("--output", copied, "--resume", option, value)
        refused(result, copied, f"{option} {stored}, not {value}", "Leave")
    assert contents(copied) == before


def test_resuming_on_other_devices(run, copied):
    """They do not shape a run: it keeps what it was begun on, and goes on where it is told to."""
    path = copied / "config.json"
    config = json.loads(path.read_text())
    config["arguments"] |= {"devices": 2, "hosts": 3}
    path.write_text(json.dumps(config))
    resume = ["--output", copied, "--resume"]
    refused(run(*resume), "--hosts 3")
    assert run(*resume, "--hosts", 1, "--devices", 1)[0] == 0
    assert json.loads(path.read_text()) == config


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_truncated_files(run, command, copied, share):
    for name, call, arguments, what in (
        ("checkpoint.npz", run, ["--output", copied, "--resume"], "not a complete checkpoint"),
        ("best.keras", run, ["--evaluate", copied], "not a complete model"),
        ("best.keras", command, ["generate", "--model", copied, "a"], "not a complete model"),
    ):
        path = copied / name
        whole = path.read_bytes()
        path.write_bytes(whole[: int(share * len(whole))])
        before = contents(copied)
        refused(call(*arguments), path, what, script=SCRIPT if call is run else COMMAND)
        assert contents(copied) == before
        path.write_bytes(whole)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"arguments": {"preset": "gone"}}', '{"arguments": {"units": 3}}',
             '{"arguments": {"seed": "x"}}', '{"arguments": {"characters": 1}}',
             '{"arguments": {"data": 3}}', '{"arguments": {"devices": 0}}',
             '{"arguments": {"max_words": {}}}', '{"arguments": {"max_words": 2}}',
             '{"arguments": {"seed": -1}}', '{"versions": {}}']
)  # fmt: skip
def test_a_damaged_config(run, copied, text):
    (copied / "config.json").write_text(text)
    before = contents(copied)
    for arguments in (["--evaluate", copied], ["--output", copied, "--resume"]):
        refused(run(*arguments), copied / "config.json", "Name the --output directory")
    assert contents(copied) == before


@pytest.mark.parametrize(
    ("name", "text", "arguments", "what"),
    [
        ("metrics.json", '{"epochs": [{"epoch": 1}]}', ["--evaluate"], "epochs[0].val_perplexity"),
        ("metrics.json", '{"epochs": 3}', ["--evaluate"], "epochs is a list, not 3"),
        ("metrics.json", "{}", ["--evaluate"], "epochs is missing"),
        ("results.json", "{}", COMPACT, "parameters is missing"),
        ("results.json", "[]", COMPACT, "it is an object, not []"),
        ("config.json", '{"command": 3}', COMPACT, "command is a text or null, not 3"),
        ("config.json", '{"arguments": {"data": 3}}', COMPACT, "data is a text or null, not 3"),
        ("config.json", "{", COMPACT, "not valid JSON"),
        ("vocabulary.txt", "\udcff\n", ["--resume", "--output"], "is not UTF-8 text"),
    ],
)
def test_damaged_records(run, command, copied, name, text, arguments, what):
    (copied / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    if arguments[0] == "compact":
        refused(command(*arguments, copied), copied / name, what, script=COMMAND)
    else:
        refused(run(*arguments, copied), copied / name, what)


def test_models_of_another_kind(run, command, copied):
    """The run's arguments are those of this script, and its model is none that it can use."""
    classifier = PairClassifier(12, 7, embedding_dim=4, units=4, chunk_size=2)
    classifier((np.ones((1, 2), "int32"),) * 2)
    without = LanguageModel(4, 4, 4, 1, chunk_size=2, vocabulary=["a", "b", "c", "d"])
    without.build()
    for model, what in (
        (classifier, "is a PairClassifier, and this script needs a LanguageModel"),
        (without, "its model has no vocabulary with <eos> and <unk>"),
    ):
        model.save(copied / "best.keras")
        refused(run("--evaluate", copied), copied, what)
        what = what.replace("is a PairClassifier, and this script needs", "PairClassifier, not")
        for arguments in (["generate", "a"], ["score", "--file", __file__], COMPACT[:-1]):
            refused(command(*arguments, "--model", copied), copied, what, script=COMMAND)


@pytest.mark.parametrize("content", [None, b"", b"\n\n", b"\xff\xfe"])
def test_a_file_that_cannot_be_scored(command, smoke, tmp_path, content):
    path = tmp_path / "lines.txt"
    if content is not None:
        path.write_bytes(content)
    refused(command("score", "--model", smoke[0], "--file", path), path, script=COMMAND)


def test_a_run_that_does_not_exist(run, command, tmp_path):
    missing = tmp_path / "missing"
    for arguments in (["--output", missing, "--resume"], ["--evaluate", missing]):
        refused(run(*arguments), missing, "no ")
    for arguments in (["generate", "a"], ["score", "a"], COMPACT[:-1]):
        refused(command(*arguments, "--model", missing), missing, "no ", script=COMMAND)
    assert contents(tmp_path) == {}
