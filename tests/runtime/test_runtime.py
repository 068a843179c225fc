"""Exported files: checks when they are opened, their results, and parsing without Keras."""

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
    """The distances (layers, words) of a sentence, from the table."""
    words = sentence.split()
    ids = [graphs.VOCABULARY.index(w) if w in graphs.VOCABULARY else 1 for w in words]
    rows = graphs.table()[np.array(ids, int)]
    return rows[:, 0 if gate == "forget" else 1].T


def test_run_returns_the_distances(exported):
    graph = runtime.load(exported, threads=1)
    assert sorted(graph.inputs) == ["ids", "lengths"]
    assert sorted(graph.outputs) == ["forget_distances", "input_distances"]
    assert graph.batch == (4 if exported.suffix == ".tflite" else None)
    assert graph.metadata.items() >= graphs.ABOUT.items()
    for time in (5, 9, 1):
        ids = np.random.default_rng(time).integers(0, 11, (4, time))
        lengths = [time, 1, 0, max(time - 1, 0)]
        result = graph.run(ids=ids, lengths=lengths)
        assert result.keys() == {"forget_distances", "input_distances"}
        for name, distances in graphs.expected(ids, lengths).items():
            assert_close(result[name], distances, 0.0, name)


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({}, "the inputs must be .*ids.*, got none"),
        ({"ids": np.zeros((4, 3), int)}, "the inputs must be .*lengths.*, got ids"),
        ({"ids": np.zeros((4, 3)), "lengths": [1] * 4}, "ids must have dtype int32, got float64"),
        (
            {"ids": np.zeros((4, 3), int), "lengths": [[1]] * 4},
            r"lengths must have shape .*got \(4, 1\)",
        ),
        (
            {"ids": np.full((4, 3), 1 << 40), "lengths": [1] * 4},
            "contains values out of range for int32",
        ),
        ({"ids": np.full((4, 3), 99), "lengths": [1] * 4}, r"cannot run on ids \(4, 3\)"),
        ({"ids": np.zeros((3, 3), int), "lengths": [1] * 4}, r"ids.* \(3, 3\)"),
    ],
)
def test_invalid_arrays_raise(exported, arrays, match, capfd):
    with pytest.raises(ValueError, match=match) as caught:
        runtime.load(exported).run(**arrays)
    assert str(exported) in str(caught.value)
    assert "onnxruntime:" not in capfd.readouterr().err  # the runtime does not print the error too


@pytest.mark.parametrize("threads", [0, True, 257])
def test_invalid_number_of_threads_raises(exported, threads):
    with pytest.raises(ValueError, match="threads must be an integer, from 1 to 256"):
        runtime.load(exported, threads=threads)


def test_threads_are_passed_to_the_runtime(exported, monkeypatch):
    if exported.suffix == ".onnx":
        graph = runtime.load(exported, threads=1)
        assert graph._session.get_session_options().intra_op_num_threads == 1
        return
    from ai_edge_litert import interpreter

    values, original = [], interpreter.Interpreter
    monkeypatch.setattr(
        interpreter,
        "Interpreter",
        lambda **arguments: values.append(arguments["num_threads"]) or original(**arguments),
    )
    runtime.load(exported, threads=2)
    assert values == [2]


def test_unavailable_providers_raise(exported, monkeypatch):
    with pytest.raises(ValueError, match="'tpu'"):
        runtime.load(exported, provider="tpu")
    if exported.suffix == ".tflite":
        with pytest.raises(ValueError, match="only on the CPU, not on 'cuda'"):
            runtime.load(exported, provider="cuda")
        return
    import onnxruntime

    monkeypatch.setattr(
        onnxruntime, "get_available_providers", lambda: ["XExecutionProvider", "CPU"]
    )
    with pytest.raises(ValueError, match=r"no CUDA.*, only XExec.*pip install onnxruntime-gpu"):
        runtime.load(exported, provider="cuda")


@pytest.mark.keras_free
def test_provider_that_cannot_start_raises(onnx_file, monkeypatch):
    import onnxruntime

    everything = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: everything)
    original = onnxruntime.InferenceSession

    def session(
        path, options, providers, enable_fallback
    ):  # falls back to another provider and only warns
        assert providers == everything
        return original(path, options, providers=providers[1:])

    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    with pytest.raises(ValueError, match=r"cannot start CUDAExecutionProvider"):
        runtime.load(onnx_file, provider="cuda")


@pytest.mark.parametrize(
    ("name", "module"), [("model.onnx", "onnxruntime"), ("model.tflite", "ai_edge_litert")]
)
@pytest.mark.keras_free
def test_missing_runtimes_raise(name, module, tmp_path, monkeypatch):
    for loaded in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / name).write_bytes(metadata.pack(b"", graphs.ABOUT))
    library = module.replace("_", "-")
    with pytest.raises(ImportError, match=rf"{name} needs {library} .*: pip install {library}$"):
        runtime.load(tmp_path / name)


def test_truncated_files_raise(exported, tmp_path):
    whole = exported.read_bytes()
    path = tmp_path / f"cut{exported.suffix}"
    for size in (0, 1, 8, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"cut\.\w+: .*restore the file from a copy"):
            runtime.load(path)


@pytest.mark.keras_free
def test_changed_bytes_of_a_packed_model_raise(tmp_path):
    packed = metadata.pack(bytes(range(256)), graphs.ABOUT)
    for position in range(0, 256, 15):
        changed = bytearray(packed)
        changed[position] ^= 0x10
        with pytest.raises(ValueError, match="x: the model in this file is damaged"):
            metadata.unpack(bytes(changed), "x")
    with pytest.raises(ValueError, match="x: the model in this file is damaged"):
        metadata.unpack(b"more" + packed, "x")


@pytest.mark.keras_free
def test_packed_model_is_the_model_and_a_zip_archive(tmp_path):
    path = tmp_path / "x.tflite"
    path.write_bytes(metadata.pack(b"the model", graphs.ABOUT))
    assert path.read_bytes().startswith(b"the model")
    assert path.read_bytes() == metadata.pack(
        b"the model", graphs.ABOUT
    )  # it contains no time stamp
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("keras_onlstm.json"))["bytes"] == 9
    again = metadata.pack(
        path.read_bytes(), {"graph": "layer"}
    )  # even if it has an archive already
    assert metadata.unpack(again, "x")[0] == path.read_bytes()


def test_files_of_other_programs_raise(exported, tmp_path):
    path = tmp_path / f"other{exported.suffix}"
    if exported.suffix == ".onnx":
        graphs.write_onnx(path, about=None)
    else:
        path.write_bytes(metadata.unpack(exported.read_bytes(), exported)[0])
    with pytest.raises(ValueError, match=r"contains no metadata of keras_onlstm"):
        runtime.load(path)
    path.write_bytes(b"no model at all" * 1000)
    with pytest.raises(ValueError, match=r"other\.\w+: "):
        runtime.load(path)


@pytest.mark.keras_free
@pytest.mark.parametrize(
    ("text", "match"),
    [
        (None, "contains no metadata"),
        ("[" * 100_000, "metadata are damaged"),
        ("{}", "format is missing"),
        ('{"format": 1}', "graph is missing"),
        ('{"format": 1, "graph": "parser"}', "num_layers is missing"),
        (
            '{"format": 1, "graph": "parser", "num_layers": 3, "members": [3, 3]}',
            "members has a sum of 6, but num_layers is 3",
        ),
        (
            '{"format": 1, "graph": "layer", "vocabulary": [1]}',
            r"vocabulary\[0\] must be a string, not 1",
        ),
        (
            '{"format": 1, "graph": "tree_language_model", "vocabulary": []}',
            "left_dependents is missing",
        ),
        ('{"format": 2}', "has format 2, but this version .* format 1.*--upgrade keras-onlstm"),
    ],
)
def test_invalid_metadata_raise(text, match):
    with pytest.raises(ValueError, match=match) as caught:
        metadata.loads(text, "x.onnx")
    assert str(caught.value).startswith("x.onnx: ")


@pytest.mark.keras_free
def test_metadata_round_trip():
    about = {**graphs.ABOUT, "vocabulary": ["naïve", "日本"], "format": 7}
    result = metadata.loads(metadata.dumps(about).encode(), "x")
    assert result == {**about, "format": 1}
    with pytest.raises(ValueError, match="graph is missing"):
        metadata.dumps({"vocabulary": None})


@pytest.mark.parametrize("gate", ["forget", "input"])
def test_distances_of_every_word(exported, gate):
    model = runtime.ExportedModel(runtime.load(exported))
    assert model.vocabulary == graphs.VOCABULARY and model.num_layers == 3
    result = model.distances(SENTENCES, gate)
    assert len(result) == len(SENTENCES)
    for sentence, distances in zip(SENTENCES, result, strict=True):
        assert distances.shape == (3, len(sentence.split()))
        assert_close(distances, known(sentence, gate), 0.0, sentence)
    assert model.distances([]) == []


@pytest.mark.keras_free
def test_file_of_several_models(onnx_file, tmp_path):
    assert runtime.ExportedModel(runtime.load(onnx_file)).layers_per_model == (3,)
    path = tmp_path / "three.onnx"
    graphs.write_onnx(path, {**graphs.ABOUT, "members": [1, 1, 1]})
    result = np.concatenate([known(SENTENCE.lower(), gate) for gate in ("forget", "input")])
    parser = Parser.load(path)
    assert_close(parser.distances(SENTENCE, "both"), result, 0.0, "both gates")
    assert parser.model.layers_per_model == (1, 1, 1) and (parser.layer, parser.method) == (
        None,
        "votes",
    )
    assert parser.parse(SENTENCE) == vote(result, SENTENCE.split())
    with pytest.raises(ValueError, match="layer must be an integer, from 1 to 1, not 2"):
        Parser.load(path, layer=2)
    with pytest.raises(ValueError, match=r"model\.onnx: exported models cannot be combined"):
        Parser.load([onnx_file, path])


def test_graphs_that_read_no_sentences_raise(exported):
    model = runtime.ExportedModel(runtime.load(exported))
    with pytest.raises(ValueError, match="gate must be 'forget', 'input' or 'both', got 'output'"):
        model.distances(["a"], "output")
    model.graph.metadata["graph"] = "layer"
    with pytest.raises(ValueError, match="of the kind 'layer', which cannot read sentences"):
        runtime.ExportedModel(model.graph)


@pytest.mark.keras_free
def test_metadata_that_do_not_match_the_outputs_raise(tmp_path):
    """The metadata name layers or words that the graph does not have."""
    path = tmp_path / "model.onnx"
    for about, match in (
        ({"num_layers": 5}, r"forget_distances has shape \(1, 3, 4\), but .* imply \(1, 5, 4\)"),
        ({"vocabulary": ["the", "cat"]}, "the model has no vocabulary with <eos> and <unk>"),
        ({"vocabulary": None}, "the model has no vocabulary with <eos> and <unk>"),
    ):
        graphs.write_onnx(path, {**graphs.ABOUT, **about})
        with pytest.raises(ValueError, match=match) as caught:
            Parser.load(path).parse("the cat saw")
        assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.keras_free
def test_lstm_without_distances_raises(tmp_path):
    about = {**graphs.ABOUT, "graph": "language_model"}
    graphs.write_onnx(tmp_path / "lstm.onnx", about, outputs=("log_probabilities", "rest"))
    with pytest.raises(ValueError, match=r"lstm\.onnx: this model has no distances"):
        Parser.load(tmp_path / "lstm.onnx")


@pytest.mark.parametrize(("layer", "method"), [(1, "greedy"), (3, "greedy"), (2, "binary")])
def test_parser_of_an_exported_file(exported, layer, method):
    parser = Parser.load(str(exported), layer, method, threads=1)
    assert parser.metadata == {"by": "hand"}
    result = known(SENTENCE.lower())
    assert_close(parser.distances(SENTENCE), result, 0.0, "distances")
    tree = build_tree(result[layer - 1], SENTENCE.split(), method)
    assert parser.parse(SENTENCE) == tree
    sentences = ["a dog", "the cat", SENTENCE, "do n't", "cat", "the 99 don't"]
    trees = list(parser.parse_many(sentences, block=4))
    assert trees == [parser.parse(sentence) for sentence in sentences]


def test_threads_share_a_parser(exported):
    """Eight threads start together, each with sentences of other lengths."""
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
def test_arguments_of_exported_files_raise_for_other_models(tmp_path):
    for arguments in ({"provider": "cuda"}, {"threads": 2}):
        with pytest.raises(ValueError, match="provider and threads need an exported model"):
            Parser.load(**arguments)
        with pytest.raises(ValueError, match="provider and threads need an exported model"):
            load_model(tmp_path, **arguments)
    with pytest.raises(FileNotFoundError, match=r"missing\.onnx: no such file"):
        runtime.load(tmp_path / "missing.onnx")
    with pytest.raises(ValueError, match=r"model\.pb: the name .* must end in \.onnx or \.tflite"):
        runtime.load(tmp_path / "model.pb")


FOREIGN = ("keras", "tensorflow", "jax", "torch")


def python(code, *arguments, interpreter=sys.executable, **variables):
    """Runs code in another process and returns its output."""
    process = subprocess.run(
        [str(interpreter), "-W", "error", "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**environment(), **variables},
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.split()


@pytest.mark.keras_free
def test_imports_are_lazy(onnx_file):
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


def test_parse_command(exported):
    process = command(
        "--model", exported, "--layer", 3, "--threads", 1, input=f"{SENTENCE}\na dog\n"
    )
    parser = Parser.load(exported, layer=3)
    trees = [brackets(parser.parse(text)) for text in (SENTENCE, "a dog")]
    assert (process.returncode, process.stdout.splitlines()) == (0, trees), process.stderr
    imported = {line.rsplit("|", 1)[-1].strip() for line in process.stderr.splitlines()}
    assert "numpy" in imported and not imported & set(FOREIGN)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--provider", "cuda"], ["cuda", "onnx"]),
        (["--layer", "4"], ["layer must be an integer, from 1 to 3, not 4"]),
    ],
)
def test_errors_are_one_line(exported, arguments, parts):
    if exported.suffix == ".onnx" and "cuda" in arguments:
        import onnxruntime

        if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
            pytest.skip("ONNX Runtime has CUDA here")
    process = command("--model", exported, *arguments, "a dog")
    errors = [line for line in process.stderr.splitlines() if not line.startswith("import time:")]
    errors = [line for line in errors if not line.startswith("INFO: ")]  # LiteRT, of its delegate
    assert process.returncode == 2 and len(errors) == 1 and "error:" in errors[0]
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
        process = subprocess.run(
            [str(interpreter), "-m", "pip", "install", "--quiet", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=variables,
        )
        if process.returncode and "No matching distribution" in process.stderr:
            reason = f"pip reaches no index: {process.stderr.strip().splitlines()[-1]}"
            if os.environ.get("KERAS_ONLSTM_REQUIRE_DATA") == "1":
                pytest.fail(reason, pytrace=False)
            pytest.skip(reason)
        assert process.returncode == 0, process.stderr
    return interpreter


@pytest.mark.installs
@pytest.mark.keras_free
def test_parser_needs_only_onnxruntime_numpy_and_nltk(onnx_file, tmp_path):
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

    process = run(interpreter, "-c", code, onnx_file, SENTENCE)
    assert (process.returncode, process.stdout.strip()) == (0, tree), process.stderr
    script = interpreter.with_name("keras-onlstm")
    process = run(script, "parse", "--model", onnx_file, SENTENCE)
    assert (process.returncode, process.stdout.strip()) == (0, tree), process.stderr
    process = run(script, "parse", SENTENCE)  # the model of the package needs only NumPy
    assert (process.returncode, process.stdout.strip()) == (
        0,
        brackets(Parser.load().parse(SENTENCE)),
    ), process.stderr
    (tmp_path / "model.keras").write_bytes(b"")
    process = run(script, "parse", "--model", tmp_path / "model.keras", SENTENCE)
    assert process.returncode == 2 and len(process.stderr.splitlines()) == 1, process.stderr
    assert process.stderr.endswith(": pip install keras tensorflow\n")
