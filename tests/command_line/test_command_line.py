"""`keras-onlstm generate`, `score` and `compact`: output, and one line for every error.

`parse` is tested in test_parser.py, commands on a trained run in test_language_modeling.py.
"""

import argparse
import io
import json
import math
import re
import shlex
import subprocess
import sys

import keras
import numpy as np
import pytest

from helpers import commands
from helpers.commands import contents, environment, ours
from keras_onlstm import command_line, exporting
from keras_onlstm.command_line import _COMMANDS
from keras_onlstm.command_line.inputs import sentences
from keras_onlstm.loading import load_model
from keras_onlstm.models import Ensemble, LanguageModel, PairClassifier
from keras_onlstm.models.ensemble import load_eight_bit, save_eight_bit
from keras_onlstm.version import __version__

pytestmark = pytest.mark.backend("tensorflow")  # nothing here depends on it

COMMANDS = ("parse", "train", "evaluate", "export", "generate", "score", "compact")
WORDS = ["<eos>", "<unk>", "the", "cat", "saw", "a", "dog"]
LETTERS = ["<eos>", "<unk>", "_", "a", "b"]
SENTENCE = "the cat saw a dog"


def make(words=WORDS, seed=0, **kwargs):
    model = LanguageModel(len(words), 8, 16, 2, 4, vocabulary=words, seed=seed, **kwargs)
    model.build()
    model.embeddings.assign(20 * keras.ops.convert_to_numpy(model.embeddings))
    return model


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Models of all kinds. Tests must not change them."""
    directory = tmp_path_factory.mktemp("models")
    models = [make(), make(seed=1)]
    models[0].save(directory / "one.keras")
    models[1].save(directory / "two.keras")
    save_eight_bit(Ensemble(models), directory / "both.npz", [{"by": "one"}, {"by": "two"}])
    make(recurrent="lstm").save(directory / "lstm.keras")
    make(["a", "b"]).save(directory / "plain.keras")
    classifier = PairClassifier(12, 7, embedding_dim=4, units=4, chunk_size=2)
    classifier((np.ones((1, 2), "int32"),) * 2)
    classifier.save(directory / "pairs.keras")
    (directory / "half.npz").write_bytes((directory / "both.npz").read_bytes()[:999])
    (directory / "notes.txt").write_text("the cat\n\n a dog saw the zebra \n")
    (directory / "latin.txt").write_bytes(b"the cat\n\xff\xfe\n")
    (directory / "empty.txt").write_text("\n \n")
    run = directory / "run"
    run.mkdir()
    make(LETTERS).save(run / "best.keras")
    config = {"arguments": {"characters": True, "data": str(directory / "gone")}}
    (run / "config.json").write_text(json.dumps(config))
    (directory / "corpus").mkdir()
    (directory / "corpus" / "valid.txt").write_text("a b ab\nba a\n" * 20)
    (directory / "short").mkdir()
    (directory / "short" / "valid.txt").write_text("")
    return directory


@pytest.fixture
def command(files, monkeypatch, capsys):
    """Runs a command line in the folder of the files: (exit status, stdout, stderr)."""
    monkeypatch.chdir(files)
    return commands.command_runner(monkeypatch, capsys)


def printed(result):
    status, output, errors = result
    assert (status, ours(errors)) == (0, []), errors
    return output


def refused(result, *parts):
    commands.refused("keras-onlstm", result, *parts)


@pytest.mark.parametrize("name", COMMANDS)
def test_help(command, name):
    text = printed(command(name, "--help"))
    assert text.startswith(f"usage: keras-onlstm {name}")
    assert name == "export" or "--model " in text
    for general in (command("--help"), command()):
        assert f"    {name} " in printed(general)


def test_version_is_printed(command):
    assert printed(command("--version")) == f"keras-onlstm {__version__}\n"


def test_help_imports_no_slow_libraries():
    code = (
        "import sys\n"
        "from keras_onlstm.command_line import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print(*({'numpy', 'keras', 'tensorflow', 'nltk', 'h5py'} & sys.modules.keys()), '-')"
    )
    for name in COMMANDS:
        process = subprocess.run(
            [sys.executable, "-c", code, name, "--help"],
            capture_output=True, text=True, env=environment(),
        )  # fmt: skip
        assert process.stdout.splitlines()[-1] == "-", process


def test_generate_from_all_kinds_of_files(command):
    generated = make().generate(["the", "cat"], 9, 0.7, 3, 5)
    given = ["the", "cat", "--length", 9, "--temperature", 0.7, "--top-k", 3, "--seed", 5]
    assert printed(command("generate", "--model", "one.keras", *given)).split() == [
        "the", "cat", *generated,
    ]  # fmt: skip
    rounded = load_eight_bit("both.npz")[0].models
    for more, model in (([], rounded[0]), (["--model-index", 2], rounded[1])):
        text = printed(command("generate", "--model", "both.npz", *more, "the cat", *given[2:]))
        assert text.split() == ["the", "cat", *model.generate("the cat", 9, 0.7, 3, 5)]
    lstm = printed(command("generate", "--model", "lstm.keras", "--length", 4))
    assert lstm.split() == make(recurrent="lstm").generate([], 4)


def test_generate_characters(command):
    expected = make(LETTERS).generate(["a", "_"], 12)
    for model in (["run"], ["run/best.keras", "--characters"]):
        text = printed(command("generate", "--model", *model, "a ", "--length", 12))
        assert text == "a_" + "".join(expected) + "\n"


def test_default_model(command):
    """Without --model, commands use the first model of the package."""
    model = load_model()[0].models[0]
    text = printed(command("generate", "prices fell", "--length", 5))
    assert text.split() == ["prices", "fell", *model.generate("prices fell", 5)]
    text = printed(command("score", "prices fell"))
    assert f"{model.score(['prices fell'])[0].sum():.3f}" in text


def rows(text):
    """{sentence: (tokens, unknown words, log-probability, perplexity)}, and the last line."""
    pattern = r"^(.+?) {2,}(\d+) +(\d+) +(-?\d+\.\d+) +(\d+\.\d+)$"
    actual = re.findall(pattern, text, re.MULTILINE)
    return {line: tuple(map(float, numbers)) for line, *numbers in actual}, text.splitlines()[-1]


def test_score_sentences_from_all_inputs(command):
    scores = {text: make().score([text])[0] for text in (SENTENCE, "a dog", "the <unk>")}
    for given, stdin in (
        (list(scores), b""),
        ([], "\n\n".join(scores).encode("utf-8-sig")),
        ([], "\r\n".join(scores).encode()),
    ):
        actual, last = rows(printed(command("score", "--model", "one.keras", *given, stdin=stdin)))
        assert actual.keys() == scores.keys()
        for text, numbers in scores.items():
            total, perplexity = numbers.sum(), math.exp(-numbers.mean())
            expected = (len(numbers), text.count("<unk>"), total, perplexity)
            assert actual[text] == pytest.approx(expected, abs=0.01)
        whole = np.concatenate(list(scores.values()))
        assert last == f"{len(whole)} tokens, perplexity {math.exp(-whole.mean()):.2f}"
    status, output, errors = command("score", "--model", "one.keras", "--file", "notes.txt")
    assert status == 0 and list(rows(output)[0]) == ["the cat", "a dog saw the zebra"]
    assert ours(errors) == ['Unknown words: "zebra". The model reads them as <unk>.']


TEXTS = {  # to the words that the model reads
    "The CAT saw a dog.": "the cat saw a dog",
    "the xqzzt, the BLORF": "the <unk> the <unk>",
    "a <unk> saw <unk>": "a <unk> saw <unk>",
    "xqzzt": "<unk>",
}


def test_unknown_words_are_counted_and_listed(command):
    status, output, errors = command("score", "--model", "one.keras", *TEXTS)
    assert ours(errors) == ['Unknown words: "xqzzt", "blorf". The model reads them as <unk>.']
    actual = rows(output)[0]
    assert status == 0 and list(actual) == list(TEXTS)
    for numbers, read in zip(actual.values(), TEXTS.values(), strict=True):
        right = len(read.split()) + 1, read.count("<unk>"), make().score([read])[0].sum()
        assert numbers[:3] == pytest.approx(right, abs=1e-3)


def test_prompt_is_normalized(command):
    generated = make().generate(["the", "cat", "<unk>"], 5)
    status, output, errors = command(
        "generate", "--model", "one.keras", "The", "CAT, xqzzt", "--length", 5
    )
    assert (status, output.split()) == (0, ["The", "CAT,", "xqzzt", *generated])
    assert ours(errors) == ['Unknown words: "xqzzt". The model reads them as <unk>.']


def test_score_characters(command):
    actual, _ = rows(printed(command("score", "--model", "run", "a b")))
    assert actual["a b"][2] == pytest.approx(make(LETTERS).score(["a _ b"])[0].sum(), abs=1e-3)


def test_compact_from_files(command, tmp_path):
    """One model, an ensemble, and several models, in 8 bits already or not."""
    single, both = tmp_path / "one.npz", tmp_path / "both.npz"
    text = printed(command("compact", "--model", "lstm.keras", "--output", single))
    assert "one.npz: 0.01 MB" in text and "lstm.keras: perplexity not measured" in text
    model, about = load_eight_bit(single)
    assert about is None and np.allclose(
        model.score([SENTENCE])[0], make(recurrent="lstm").score([SENTENCE])[0], atol=0.05
    )
    printed(command("compact", "--model", "both.npz", "--output", both))
    again, about = load_eight_bit(both)
    assert about == [{"by": "one"}, {"by": "two"}]
    first = load_eight_bit("both.npz")[0].distances([SENTENCE])[0]
    assert np.abs(again.distances([SENTENCE])[0] - first).max() < 1e-6
    given = ["--model", "two.keras", "one.keras"]
    printed(command("compact", *given, "--output", both))
    again, about = load_eight_bit(both)
    assert about == [None, None] and again.layers_per_model == (2, 2)
    assert np.allclose(again.distances([SENTENCE])[0][:2], first[2:], atol=0.02)


def test_compact_prints_perplexities(command, tmp_path):
    output = tmp_path / "run.npz"
    text = printed(command("compact", "--model", "run", "--data", "corpus", "--output", output))
    before, after = map(float, re.findall(r"perplexity (\S+), with 8 bits (\S+)", text)[0])
    assert 1 < before < 20 and abs(after - before) < 0.2
    both = tmp_path / "both.npz"
    text = printed(command("compact", "--model", "both.npz", "--data", "corpus", "--output", both))
    assert len(re.findall(r"both.npz: validation perplexity \S+, with 8 bits", text)) == 2
    text = printed(command("compact", "--model", "run", "--output", output))
    assert "run: perplexity not measured" in text  # its own corpus does not exist


SCORE = ["score", "--model", "one.keras"]
COMPACT = ["compact", "--output", "new.npz", "--model"]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["tune"], ["'tune'", "generate"]),
        (["generate", "--top-n", "3"], ["unexpected argument --top-n: did you mean --top-k?"]),
        (["generate", "--top-k", "0"], ["--top-k", "0 is not an integer, 1 or above"]),
        (["generate", "--temperature", "nan"], ["--temperature nan", "above 0"]),
        (["generate", "--seed", "-1"], ["--seed", "-1"]),
        (["generate", "--model", "gone.keras"], ["gone.keras: no such model", "Pass a .keras"]),
        (["generate", "--model", "corpus"], ["corpus: the directory has no best.keras"]),
        (["generate", "--model", "half.npz"], ["half.npz: not a complete model", "Restore it"]),
        (["generate", "--model", "notes.txt"], ["notes.txt: must end in .keras, "]),
        (
            ["generate", "--model", "both.npz", "--model-index", "3"],
            ["--model-index 3: both.npz has models 1 to 2"],
        ),
        (["score", "--model", "pairs.keras", "a"], ["pairs.keras: must be a language model, got"]),
        ([*SCORE, "--threads", "2"], ["one.keras", "need an exported model"]),
        ([*SCORE, "--file", "gone.txt"], ["gone.txt: no such file"]),
        ([*SCORE, "--file", "latin.txt"], ["latin.txt, line 2: is not"]),
        ([*SCORE, "--file", "empty.txt"], ["Nothing to score: empty.txt contains no"]),
        (SCORE, ["score: standard input contains no words"]),
        ([*COMPACT, "a.onnx"], ["a.onnx: is an exported file", "Pass the"]),
        ([*COMPACT, "pairs.keras"], ["pairs.keras: PairClassifier, not"]),
        ([*COMPACT, "plain.keras"], ["plain.keras", "no vocabulary with"]),
        ([*COMPACT, "one.keras", "both.npz"], ["both.npz: contains several models"]),
        ([*COMPACT, "one.keras", "lstm.keras"], ["model 2: has no distances"]),
        ([*COMPACT, "one.keras", "--data", "gone"], ["gone has no valid.txt"]),
        ([*COMPACT, "one.keras", "--data", "short"], ["valid.txt: the text has no words"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_errors_are_one_line(command, files, arguments, parts):
    before = contents(files)
    result = command(*arguments)
    refused(result, *parts)
    assert "Traceback" not in result[2] and contents(files) == before


def test_exported_models(command, tmp_path):
    """A new process scores without Keras. Other graphs and commands raise errors."""
    exporting.to_onnx(make(), tmp_path / "model.onnx", graph="language_model")
    exporting.to_onnx(make(), tmp_path / "parser.onnx", graph="parser")
    code = (
        "import sys\n"
        "from keras_onlstm.command_line import main\n"
        "main(sys.argv[1:])\n"
        "print(*({'keras', 'tensorflow'} & sys.modules.keys()), '-')"
    )
    given = ["score", "--model", tmp_path / "model.onnx", "--threads", "1", SENTENCE]
    process = subprocess.run(
        [sys.executable, "-c", code, *given], capture_output=True, text=True, env=environment()
    )
    *text, last = process.stdout.splitlines()
    assert last == "-", process
    actual, _ = rows("\n".join(text))
    assert actual[SENTENCE][2] == pytest.approx(make().score([SENTENCE])[0].sum(), abs=1e-2)
    result = command("generate", "--model", tmp_path / "model.onnx", "a")
    refused(result, "model.onnx: an exported file cannot generate", "exported from")
    result = command("score", "--model", tmp_path / "parser.onnx", "a")
    refused(result, "parser.onnx: a parser does not compute probabilities", "language_model")


EXAMPLES = [example for module in _COMMANDS.values() for example in module.EXAMPLES]


@pytest.mark.parametrize("example", EXAMPLES)
def test_help_examples_are_valid(example, monkeypatch, capsys):
    """Each example is in the help of its command, which accepts it."""
    _, name, *arguments = shlex.split(example.partition(" < ")[0])
    with pytest.raises(SystemExit):
        command_line.main([name, "--help"])
    assert f"  {example}\n" in capsys.readouterr().out
    calls = []
    monkeypatch.setattr(_COMMANDS[name], "run", calls.append)
    command_line.main([name, *arguments])
    assert len(calls) == 1


def test_hyphen_stands_for_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"the cat\na dog\n")))
    options = argparse.Namespace(sentences=["first", "-", "last"], file=[])
    assert list(sentences(options)) == ["first", "the cat", "a dog", "last"]


def test_keras_model_prints_nothing_on_standard_error(files):
    """A new process starts TensorFlow without its logs."""
    variables = {k: v for k, v in environment().items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    code = "from keras_onlstm.command_line import main; main()"
    process = subprocess.run(
        [sys.executable, "-c", code, "parse", "--model", files / "one.keras", "the cat"],
        capture_output=True,
        env=variables,
    )
    assert (process.returncode, process.stdout, process.stderr) == (0, b"(X the cat)\n", b"")
