"""Exported files: what they are checked for, what they give, and parsing with them alone."""

import json
import os
import random
import shutil
import subprocess
import sys
import threading
import venv
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from helpers import graphs
from helpers.checks import assert_close
from helpers.commands import ROOT, environment
from keras_onlstm import runtime
from keras_onlstm.loading import load_model
from keras_onlstm.parser import Parser
from keras_onlstm.parsing import brackets, build_tree, vote
from keras_onlstm.runtime import metadata

SENTENCE = "The cat saw a dog"
SENTENCES = ["a cat", "", "the zebra saw a dog", "dog", "do n't", "the cat the cat the cat"]


@pytest.fixture(scope="module")
def onnx_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("onnx") / "model.onnx"
    graphs.write_onnx(path)
    return path


@pytest.fixture(scope="module")
def flatbuffer():
    return graphs.tflite(batch=4)


@pytest.fixture(scope="module")
def tflite_file(tmp_path_factory, flatbuffer):
    path = tmp_path_factory.mktemp("tflite") / "model.tflite"
    path.write_bytes(metadata.pack(flatbuffer, graphs.ABOUT))
    return path


@pytest.fixture(
    params=[
        pytest.param("onnx", marks=pytest.mark.keras_free),
        pytest.param("tflite", marks=pytest.mark.backend("tensorflow")),
    ]
)
def exported(request):
    return request.getfixturevalue(f"{request.param}_file")


def known(sentence, gate="forget"):
    """The distances (layers, words) of a sentence, straight from the table."""
    words = sentence.split()
    ids = [graphs.VOCABULARY.index(w) if w in graphs.VOCABULARY else 1 for w in words]
    rows = graphs.table()[np.array(ids, int)]
    return rows[:, 0 if gate == "forget" else 1].T


def test_graphs_run(exported):
    graph = runtime.load(exported, threads=1)
    assert sorted(graph.inputs) == ["ids", "lengths"]
    assert sorted(graph.outputs) == ["forget_distances", "input_distances"]
    assert graph.batch == (4 if exported.suffix == ".tflite" else None)
    assert graph.metadata.items() >= graphs.ABOUT.items()
    for time in (5, 9, 1):
        ids = np.random.default_rng(time).integers(0, 11, (4, time))
        lengths = [time, 1, 0, max(time - 1, 0)]
        found = graph.run(ids=ids, lengths=lengths)
        assert found.keys() == {"forget_distances", "input_distances"}
        for name, distances in graphs.expected(ids, lengths).items():
            assert_close(found[name], distances, 0.0, name)


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({}, "its inputs are .*ids.*, not none"),
        ({"ids": np.zeros((4, 3), int)}, "its inputs are .*lengths.*, not ids"),
        ({"ids": np.zeros((4, 3)), "lengths": [1] * 4}, "ids is of int32, not of float64"),
        ({"ids": np.zeros((4, 3), int), "lengths": [[1]] * 4}, r"lengths has shape .*not \(4, 1\)"),
        ({"ids": np.full((4, 3), 1 << 40), "lengths": [1] * 4}, "numbers that int32 cannot hold"),
        ({"ids": np.full((4, 3), 99), "lengths": [1] * 4}, r"cannot run on ids \(4, 3\)"),
        ({"ids": np.zeros((3, 3), int), "lengths": [1] * 4}, r"ids.* \(3, 3\)"),
    ],
)
def test_wrong_arrays(exported, arrays, match, capfd):
    with pytest.raises(ValueError, match=match) as caught:
        runtime.load(exported).run(**arrays)
    assert str(exported) in str(caught.value)
    assert "onnxruntime:" not in capfd.readouterr().err  # what is raised is not printed as well


@pytest.mark.parametrize("threads", [0, True, 257])
def test_threads_are_counted(exported, threads):
    with pytest.raises(ValueError, match="threads must be an integer, from 1 to 256"):
        runtime.load(exported, threads=threads)


def test_threads_reach_the_runtime(exported, monkeypatch):
    if exported.suffix == ".onnx":
        graph = runtime.load(exported, threads=1)
        assert graph._session.get_session_options().intra_op_num_threads == 1
        return
    from ai_edge_litert import interpreter

    given, original = [], interpreter.Interpreter
    monkeypatch.setattr(
        interpreter,
        "Interpreter",
        lambda **arguments: given.append(arguments["num_threads"]) or original(**arguments),
    )
    runtime.load(exported, threads=2)
    assert given == [2]


def test_providers(exported, monkeypatch):
    with pytest.raises(ValueError, match="'tpu'"):
        runtime.load(exported, provider="tpu")
    if exported.suffix == ".tflite":
        with pytest.raises(ValueError, match="on the CPU alone, not on 'cuda'"):
            runtime.load(exported, provider="cuda")
        return
    import onnxruntime

    monkeypatch.setattr(
        onnxruntime, "get_available_providers", lambda: ["XExecutionProvider", "CPU"]
    )
    with pytest.raises(ValueError, match=r"no CUDA.*, only XExec.*pip install onnxruntime-gpu"):
        runtime.load(exported, provider="cuda")


@pytest.mark.keras_free
def test_a_provider_that_does_not_start(onnx_file, monkeypatch):
    import onnxruntime

    everything = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: everything)
    original = onnxruntime.InferenceSession

    def session(path, options, providers, enable_fallback):  # which falls back, and only warns
        assert providers == everything
        return original(path, options, providers=providers[1:])

    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    with pytest.raises(ValueError, match=r"has CUDAExecutionProvider, but cannot start it"):
        runtime.load(onnx_file, provider="cuda")


@pytest.mark.parametrize(
    ("name", "module"), [("model.onnx", "onnxruntime"), ("model.tflite", "ai_edge_litert")]
)
@pytest.mark.keras_free
def test_missing_runtimes(name, module, tmp_path, monkeypatch):
    for loaded in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / name).write_bytes(metadata.pack(b"", graphs.ABOUT))
    library = module.replace("_", "-")
    with pytest.raises(ImportError, match=rf"{name} needs {library} .*: pip install {library}$"):
        runtime.load(tmp_path / name)


def test_every_cut_is_refused(exported, tmp_path):
    whole = exported.read_bytes()
    path = tmp_path / f"cut{exported.suffix}"
    for size in (0, 1, 8, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"cut\.\w+: .*restore the file from a copy"):
            runtime.load(path)


@pytest.mark.keras_free
def test_every_changed_byte_of_a_packed_model_is_refused(tmp_path):
    packed = metadata.pack(bytes(range(256)), graphs.ABOUT)
    for place in range(0, 256, 15):
        changed = bytearray(packed)
        changed[place] ^= 0x10
        with pytest.raises(ValueError, match="x: its model is damaged"):
            metadata.unpack(bytes(changed), "x")
    with pytest.raises(ValueError, match="x: its model is damaged"):
        metadata.unpack(b"more" + packed, "x")


@pytest.mark.keras_free
def test_a_packed_model_is_the_model_and_an_archive(tmp_path):
    path = tmp_path / "x.tflite"
    path.write_bytes(metadata.pack(b"the model", graphs.ABOUT))
    assert path.read_bytes().startswith(b"the model")
    assert path.read_bytes() == metadata.pack(b"the model", graphs.ABOUT)  # no time is in it
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("keras_onlstm.json"))["bytes"] == 9
    again = metadata.pack(path.read_bytes(), {"graph": "layer"})  # even of what has an archive
    assert metadata.unpack(again, "x")[0] == path.read_bytes()


def test_files_of_others(exported, tmp_path):
    path = tmp_path / f"other{exported.suffix}"
    if exported.suffix == ".onnx":
        graphs.write_onnx(path, about=None)
    else:
        path.write_bytes(metadata.unpack(exported.read_bytes(), exported)[0])
    with pytest.raises(ValueError, match=r"holds no metadata of keras_onlstm"):
        runtime.load(path)
    path.write_bytes(b"no model at all" * 1000)
    with pytest.raises(ValueError, match=r"other\.\w+: "):
        runtime.load(path)


@pytest.mark.keras_free
@pytest.mark.parametrize(
    ("text", "match"),
    [
        (None, "holds no metadata"),
        ("[" * 100_000, "metadata are damaged"),
        ("{}", "format is missing"),
        ('{"format": 1}', "graph is missing"),
        ('{"format": 1, "graph": "parser"}', "num_layers is missing"),
        (
            '{"format": 1, "graph": "parser", "num_layers": 3, "members": [3, 3]}',
            "members have 6 layers, and num_layers is 3",
        ),
        (
            '{"format": 1, "graph": "layer", "vocabulary": [1]}',
            r"vocabulary\[0\] must be a string, not 1",
        ),
        (
            '{"format": 1, "graph": "tree_language_model", "vocabulary": []}',
            "left_dependents is missing",
        ),
        ('{"format": 2}', "of format 2, and this version knows 1.*--upgrade keras-onlstm"),
    ],
)
def test_metadata_are_checked(text, match):
    with pytest.raises(ValueError, match=match) as caught:
        metadata.loads(text, "x.onnx")
    assert str(caught.value).startswith("x.onnx: ")


@pytest.mark.keras_free
def test_metadata_come_back():
    about = {**graphs.ABOUT, "vocabulary": ["naïve", "日本"], "format": 7}
    found = metadata.loads(metadata.dumps(about).encode(), "x")
    assert found == {**about, "format": 1}
    with pytest.raises(ValueError, match="graph is missing"):
        metadata.dumps({"vocabulary": None})


@pytest.mark.parametrize("gate", ["forget", "input"])
def test_distances_of_every_word(exported, gate):
    model = runtime.ExportedModel(runtime.load(exported))
    assert model.vocabulary == graphs.VOCABULARY and model.num_layers == 3
    found = model.distances(SENTENCES, gate)
    assert len(found) == len(SENTENCES)
    for sentence, distances in zip(SENTENCES, found, strict=True):
        assert distances.shape == (3, len(sentence.split()))
        assert_close(distances, known(sentence, gate), 0.0, sentence)
    assert model.distances([]) == []


@pytest.mark.keras_free
def test_members(onnx_file, tmp_path):
    assert runtime.ExportedModel(runtime.load(onnx_file)).members == (3,)
    path = tmp_path / "three.onnx"
    graphs.write_onnx(path, {**graphs.ABOUT, "members": [1, 1, 1]})
    found = np.concatenate([known(SENTENCE.lower(), gate) for gate in ("forget", "input")])
    parser = Parser.load(path)
    assert_close(parser.distances(SENTENCE, "both"), found, 0.0, "both gates")
    assert parser.model.members == (1, 1, 1) and (parser.layer, parser.method) == (None, "votes")
    assert parser.parse(SENTENCE) == vote(found, SENTENCE.split())
    with pytest.raises(ValueError, match="layer must be an integer, from 1 to 1, not 2"):
        Parser.load(path, layer=2)
    with pytest.raises(ValueError, match=r"model\.onnx: an exported file parses by itself"):
        Parser.load([onnx_file, path])


def test_models_that_read_no_sentences(exported):
    model = runtime.ExportedModel(runtime.load(exported))
    with pytest.raises(ValueError, match="gate is 'forget', 'input' or 'both', not 'output'"):
        model.distances(["a"], "output")
    model.graph.metadata["graph"] = "layer"
    with pytest.raises(ValueError, match="of the kind 'layer', which reads no sentences"):
        runtime.ExportedModel(model.graph)


@pytest.mark.keras_free
def test_metadata_that_promise_other_outputs(tmp_path):
    """Layers or words that the graph does not have."""
    path = tmp_path / "model.onnx"
    for about, match in (
        ({"num_layers": 5}, r"forget_distances have the shape \(1, 3, 4\), and by .* \(1, 5, 4\)"),
        ({"vocabulary": ["the", "cat"]}, "its model has no vocabulary with <eos> and <unk>"),
        ({"vocabulary": None}, "its model has no vocabulary with <eos> and <unk>"),
    ):
        graphs.write_onnx(path, {**graphs.ABOUT, **about})
        with pytest.raises(ValueError, match=match) as caught:
            Parser.load(path).parse("the cat saw")
        assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.keras_free
def test_an_lstm_has_no_distances(tmp_path):
    about = {**graphs.ABOUT, "graph": "language_model"}
    graphs.write_onnx(tmp_path / "lstm.onnx", about, outputs=("log_probabilities", "rest"))
    with pytest.raises(ValueError, match=r"lstm\.onnx: has no distances"):
        Parser.load(tmp_path / "lstm.onnx")


@pytest.mark.parametrize(("layer", "method"), [(1, "greedy"), (3, "greedy"), (2, "binary")])
def test_parsers(exported, layer, method):
    parser = Parser.load(str(exported), layer, method, threads=1)
    assert parser.about == {"by": "hand"}
    found = known(SENTENCE.lower())
    assert_close(parser.distances(SENTENCE), found, 0.0, "distances")
    tree = build_tree(found[layer - 1], SENTENCE.split(), method)
    assert parser.parse(SENTENCE) == tree
    sentences = ["a dog", "the cat", SENTENCE, "do n't", "cat", "the 99 don't"]
    trees = list(parser.parse_many(sentences, block=4))
    assert trees == [parser.parse(sentence) for sentence in sentences]


def test_threads_share_a_parser(exported):
    """Eight of them, each with sentences of lengths of its own, start together."""
    parser, start = Parser.load(exported, threads=1), threading.Barrier(8)
    words = graphs.VOCABULARY[2:]

    def work(number):
        draw = random.Random(number)
        start.wait()
        for _ in range(40):
            sentence = " ".join(draw.choices(words, k=draw.randint(1, 30)))
            assert_close(parser.distances(sentence), known(sentence), 0.0, sentence)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


@pytest.mark.keras_free
def test_arguments_of_exported_files_alone(tmp_path):
    for arguments in ({"provider": "cuda"}, {"threads": 2}):
        with pytest.raises(ValueError, match="provider and threads are for exported files"):
            Parser.load(**arguments)
        with pytest.raises(ValueError, match="provider and threads are for exported files"):
            load_model(tmp_path, **arguments)
    with pytest.raises(FileNotFoundError, match=r"missing\.onnx: no such model"):
        runtime.load(tmp_path / "missing.onnx")
    with pytest.raises(ValueError, match=r"model\.pb: ends neither in \.onnx nor in \.tflite"):
        runtime.load(tmp_path / "model.pb")


FOREIGN = ("keras", "tensorflow", "jax", "torch")


def python(code, *arguments, interpreter=sys.executable, **variables):
    """What a process of its own prints."""
    done = subprocess.run(
        [str(interpreter), "-W", "error", "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**environment(), **variables},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.keras_free
def test_nothing_is_imported_before_it_is_needed(onnx_file):
    code = (
        "import sys\n"
        "import keras_onlstm.runtime\n"
        "from keras_onlstm import Parser, datasets, parsing\n"
        "parser = Parser.load(sys.argv[1])\n"
        f"print(*(name for name in {(*FOREIGN, 'nltk')} if name in sys.modules), '-')\n"
        f"parser.parse({SENTENCE!r})\n"
        f"print(*(name for name in {(*FOREIGN, 'nltk')} if name in sys.modules))\n"
    )
    assert python(code, onnx_file) == ["-", "nltk"]


def command(*arguments, interpreter=sys.executable, **options):
    code = "from keras_onlstm.command_line import main; main()"
    return subprocess.run(
        [str(interpreter), "-X", "importtime", "-c", code, "parse", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
        **options,
    )


def test_the_command(exported):
    done = command("--model", exported, "--layer", 3, "--threads", 1, input=f"{SENTENCE}\na dog\n")
    parser = Parser.load(exported, layer=3)
    trees = [brackets(parser.parse(text)) for text in (SENTENCE, "a dog")]
    assert (done.returncode, done.stdout.splitlines()) == (0, trees), done.stderr
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "numpy" in imported and not imported & set(FOREIGN)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--provider", "cuda"], ["cuda", "onnx"]),
        (["--layer", "4"], ["layer must be an integer, from 1 to 3, not 4"]),
    ],
)
def test_mistakes_are_one_line(exported, arguments, parts):
    if exported.suffix == ".onnx" and "cuda" in arguments:
        import onnxruntime

        if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
            pytest.skip("ONNX Runtime has CUDA here")
    done = command("--model", exported, *arguments, "a dog")
    errors = [line for line in done.stderr.splitlines() if not line.startswith("import time:")]
    errors = [line for line in errors if not line.startswith("INFO: ")]  # LiteRT, of its delegate
    assert done.returncode == 2 and len(errors) == 1 and "error:" in errors[0]
    assert all(part.lower() in errors[0].lower() for part in parts), errors


def _new_environment(directory):
    """The Python of a new environment with the package and what a parser needs beside it."""
    source = directory / "source"
    source.mkdir()
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "keras_onlstm", source / "keras_onlstm", ignore=ignored)
    venv.create(directory / "venv", with_pip=True)
    interpreter = directory / "venv" / "bin" / "python"
    variables = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    variables.pop("PYTHONPATH", None)
    for arguments in (["onnxruntime", "numpy", "nltk"], ["--no-deps", str(source)]):
        done = subprocess.run(
            [str(interpreter), "-m", "pip", "install", "--quiet", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=variables,
        )
        if done.returncode and "No matching distribution" in done.stderr:
            reason = f"pip reaches no index: {done.stderr.strip().splitlines()[-1]}"
            if os.environ.get("KERAS_ONLSTM_REQUIRE_DATA") == "1":
                pytest.fail(reason, pytrace=False)
            pytest.skip(reason)
        assert done.returncode == 0, done.stderr
    return interpreter


@pytest.mark.installs
@pytest.mark.keras_free
def test_a_parser_needs_only_onnxruntime_numpy_and_nltk(onnx_file, tmp_path):
    interpreter = _new_environment(tmp_path)
    tree = brackets(Parser.load(onnx_file).parse(SENTENCE))
    code = (
        "import importlib.util, sys\n"
        "from keras_onlstm import Parser\n"
        "from keras_onlstm.parsing import brackets\n"
        "print(brackets(Parser.load(sys.argv[1]).parse(sys.argv[2])))\n"
        f"assert not any(map(importlib.util.find_spec, {FOREIGN}))\n"
        "import importlib.resources\n"
        "assert importlib.resources.files('keras_onlstm').joinpath('py.typed').is_file()\n"
    )
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*arguments):
        return subprocess.run(
            list(map(str, arguments)),
            capture_output=True,
            text=True,
            check=False,
            env=variables,
            cwd=tmp_path,
        )

    done = run(interpreter, "-c", code, onnx_file, SENTENCE)
    assert (done.returncode, done.stdout.strip()) == (0, tree), done.stderr
    script = interpreter.with_name("keras-onlstm")
    done = run(script, "parse", "--model", onnx_file, SENTENCE)
    assert (done.returncode, done.stdout.strip()) == (0, tree), done.stderr
    done = run(script, "parse", SENTENCE)  # the package's own model, which NumPy alone reads
    assert (done.returncode, done.stdout.strip()) == (0, brackets(Parser.load().parse(SENTENCE))), (
        done.stderr
    )
    (tmp_path / "model.keras").write_bytes(b"")
    done = run(script, "parse", "--model", tmp_path / "model.keras", SENTENCE)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.endswith(": pip install keras tensorflow\n")
