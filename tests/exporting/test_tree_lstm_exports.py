"""TreeLSTM exported in every format, compared with Keras and the reference implementation."""

import subprocess
import sys

import numpy as np
import pytest

from helpers import exports, graphs
from helpers.checks import SINGLE, assert_close, assert_differ
from helpers.tree_models import trees_of, vocabulary, weights_of
from keras_onlstm import convert, runtime
from keras_onlstm.dependencies import DependencyTree, chain, random_tree
from keras_onlstm.exporting import graph_names, to_onnx, to_saved_model, to_tflite
from keras_onlstm.exporting.graphs import make_graph
from keras_onlstm.loading import load_model
from keras_onlstm.models import TreeLSTM
from keras_onlstm.parser import Parser

pytestmark = pytest.mark.backend("tensorflow")

BATCH = 8  # of TensorFlow Lite files
WORDS = vocabulary(60)
KINDS = [(left, layers) for left in (False, True) for layers in (1, 2)]
FILES = [
    *(("onnx", *kind) for kind in KINDS),
    *(("tflite", *kind) for kind in ((False, 1), (True, 2))),
]


def tree_lstm(left=True, layers=1, **options):
    model = TreeLSTM(60, 6, 10, layers, left, layers, vocabulary=WORDS, seed=0, **options)
    model.build()
    return exports.with_weights(model)


@pytest.fixture(scope="module")
def models():
    return {kind: tree_lstm(*kind) for kind in KINDS}


@pytest.fixture(scope="module")
def files(models, tmp_path_factory):
    """Paths by format, left dependents and layers."""
    directory, result = tmp_path_factory.mktemp("trees"), {}
    for suffix, left, layers in FILES:
        path = directory / f"{left}_{layers}.{suffix}"
        if suffix == "onnx":
            to_onnx(models[left, layers], path, metadata={"by": "a test"}, check=False)
        else:
            to_tflite(models[left, layers], path, batch=BATCH, check=False)
        result[suffix, left, layers] = path
    return result


@pytest.fixture(scope="module")
def scorers(files):
    return {key: runtime.make_model(runtime.load(path, threads=1)) for key, path in files.items()}


def words_of(count, seed=0):
    names = [*WORDS[2:], "unheard-of"]
    return list(np.random.default_rng(seed).choice(names, count))


def fan(words):
    """Every word depends on the one in the middle."""
    middle = len(words) // 2 + 1
    heads = [0 if index == middle else middle for index in range(1, len(words) + 1)]
    return DependencyTree(words, heads)


def chain_to_the_left(words):
    return DependencyTree(words, [*range(2, len(words) + 1), 0])


SHAPES = (chain, chain_to_the_left, fan, random_tree)


def trees(count):
    """Two trees of every shape."""
    return [shape(words_of(count, seed)) for seed in range(2) for shape in SHAPES]


@pytest.mark.parametrize("batch", [1, BATCH])
@pytest.mark.parametrize("count", [1, 17, 200])
@pytest.mark.parametrize(("suffix", "left", "layers"), FILES)
def test_scores_match_keras(models, scorers, suffix, left, layers, count, batch):
    arguments = trees(count)
    expected = models[left, layers].score(arguments)
    scorer, result = scorers[suffix, left, layers], []
    for start in range(0, len(arguments), batch):
        result += scorer.score(arguments[start : start + batch])
    for tree, scores, target in zip(arguments, result, expected, strict=True):
        assert len(scores) == len(tree)
        assert_close(scores, target, SINGLE, f"a tree of {count} words")
    if count > 1:
        assert_differ(expected[2], expected[3], 0.1, "of a fan and another tree")


@pytest.mark.parametrize("prefix", ["tree.", "ldtree."])
def test_scores_match_the_reference_implementation(tree_reference, prefix, tmp_path):
    words = vocabulary(int(tree_reference["vocabulary_size"]))
    model = convert.tree_lstm_from_arrays(weights_of(tree_reference, prefix), vocabulary=words)
    exported = to_onnx(model, tmp_path / "model.onnx")
    assert exported.difference.largest < SINGLE
    scorer = runtime.make_model(runtime.load(exported.path))
    arguments = trees_of(tree_reference)
    scores = np.concatenate(scorer.score(arguments))
    assert_close(scores, tree_reference[f"{prefix}log_probability"], SINGLE, "words")
    target = tree_reference[f"{prefix}tree_log_probability"]
    assert_close(scorer.log_probability(arguments), target, 1e-4, "trees of up to 30 words")


def test_many_trees_keep_their_order(models, scorers):
    """Trees are read in batches of similar length, but scores keep the order of the trees."""
    arguments = [random_tree(words_of(1 + 7 * n % 43, n), n) for n in range(43)]
    expected = models[True, 2].score(arguments)
    for suffix in ("onnx", "tflite"):
        result = scorers[suffix, True, 2].score(arguments)
        for scores, target in zip(result, expected, strict=True):
            assert_close(scores, target, SINGLE, suffix)
    assert scorers["onnx", True, 2].score([]) == []


def test_padding_has_no_effect(scorers):
    rng, (run, heads) = np.random.default_rng(0), (scorers["onnx", True, 2].graph.run, [2, 0, 2])
    rows = np.full((2, 9), -1)
    rows[0, :3], rows[1] = heads, random_tree(["_"] * 9, 3).heads
    ids = rng.integers(0, 60, (2, 9))
    result = run(ids=ids, heads=rows)["log_probabilities"]
    assert (result[0, 3:] == 0.0).all() and (result[1] < 0.0).all()
    single = run(ids=ids[:1, :3], heads=[heads])["log_probabilities"]
    assert_close(result[0, :3], single[0], SINGLE, "in a batch and without one")
    others = np.where(np.arange(9) < 3, ids, rng.integers(0, 60, (2, 9)))
    others[1] = ids[1]
    again = run(ids=others, heads=rows)["log_probabilities"]
    assert_close(again, result, 0.0, "with another padding")


def test_long_sentences(models, scorers):
    arguments = [chain(words_of(1500)), fan(words_of(1500))]
    result = scorers["onnx", False, 1].score(arguments)
    for scores, target in zip(result, models[False, 1].score(arguments), strict=True):
        assert_close(scores, target, SINGLE, "1,500 words")


def test_saved_model(models, tmp_path):
    exported = to_saved_model(models[True, 1], tmp_path / "saved")
    assert exported.graphs == ("tree_language_model",) == graph_names(models[True, 1])
    assert exported.difference.largest < SINGLE
    run = exports.endpoints(tmp_path / "saved")["tree_language_model"]
    tree = random_tree(words_of(30))
    ids = models[True, 1].schedule_tree(tree).words
    result = run(ids=ids[None], heads=np.array([tree.heads], "int32"))["log_probabilities"]
    assert_close(result[0], models[True, 1].score([tree])[0], SINGLE, "scores")


@pytest.mark.parametrize(("suffix", "left", "layers"), FILES)
def test_metadata_and_inputs(scorers, suffix, left, layers):
    scorer = scorers[suffix, left, layers]
    about = scorer.graph.metadata
    assert about["graph"] == "tree_language_model" and about["vocabulary"] == WORDS
    assert scorer.left_dependents is left is about["left_dependents"]
    assert set(scorer.graph.inputs) == {"ids", "heads"}
    assert scorer.graph.batch == (None if suffix == "onnx" else BATCH)


def test_loops_have_no_constant_states(files):
    import onnx

    model = onnx.load(files["onnx", True, 2])
    loops = [node for node in model.graph.node if node.op_type == "Loop"]
    bodies = [node.attribute[0].g for node in loops]
    assert len(loops) == 3  # levels, left dependents, the words
    for body in bodies:
        assert not {value.name for value in body.input} & {value.name for value in body.output}
    matrices = [c for body in bodies for c in body.initializer if np.prod(c.dims) >= 400]
    assert sorted(list(c.dims) for c in matrices) == [[10, 40]] * 3 + [[40, 40]] * 3


@pytest.mark.parametrize("quantize", ["dynamic", "float16"])
@pytest.mark.parametrize(("suffix", "to"), [("onnx", to_onnx), ("tflite", to_tflite)])
def test_quantized_files(tmp_path, suffix, to, quantize):
    model = TreeLSTM(900, 50, 100, left_dependents=True, vocabulary=vocabulary(900), seed=0)
    model.build()
    exports.with_weights(model, 0.1)
    exported = to(model, tmp_path / f"model.{suffix}", quantize=quantize)
    bound, minimum, maximum = {"dynamic": (0.05, 0.25, 0.33), "float16": (0.005, 0.5, 0.57)}[
        quantize
    ]
    assert 0.0 < exported.difference.largest < bound
    assert minimum < exported.size / (4 * model.count_params()) < maximum


def test_reference_outputs_are_those_of_keras():
    model = tree_lstm()
    graph = make_graph(model)
    inputs = {"ids": np.array([[5, 6]]), "heads": np.array([[2, 0]])}
    tree = DependencyTree([WORDS[5], WORDS[6]], [2, 0])
    expected = graph.reference(**inputs)["log_probabilities"]
    assert_close(expected[0], model.score([tree])[0], 1e-6, "of Keras")


@pytest.mark.parametrize("suffix", ["onnx", "tflite"])
def test_scores_without_keras(models, files, suffix):
    path = files[suffix, False, 1]
    command = (
        "import sys; from keras_onlstm.dependencies import DependencyTree; "
        "from keras_onlstm.loading import load_model; "
        f"model, _ = load_model({str(path)!r}); "
        "print(*model.score([DependencyTree(['w2', 'w3', 'new'], [2, 0, 2])])[0]);"
        "assert not {'keras', 'tensorflow', 'jax', 'torch'} & set(sys.modules)"
    )
    process = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    expected = models[False, 1].score([DependencyTree(["w2", "w3", "new"], [2, 0, 2])])[0]
    assert_close([float(number) for number in process.stdout.split()], expected, SINGLE, "scores")


def test_load_model_of_an_exported_file(files):
    model, about = load_model(files["onnx", True, 1])
    assert isinstance(model, runtime.ExportedTreeModel) and about == {"by": "a test"}
    with pytest.raises(ValueError, match="must be a language model, got ExportedTreeModel"):
        Parser.load(files["onnx", True, 1])


@pytest.mark.parametrize(
    ("tree", "match"),
    [
        (DependencyTree(["w2"] * 5, [5, 4, 4, 0, 4]), "not projective"),
        (DependencyTree(["w2", "<root>"], [0, 1]), "must not contain <root>"),
    ],
)
def test_invalid_trees_raise(scorers, tree, match):
    with pytest.raises(ValueError, match=match):
        scorers["onnx", True, 1].score([chain(["w2"]), tree])


@pytest.mark.parametrize("suffix", ["onnx", "tflite"])
def test_heads_out_of_range_raise(scorers, suffix):
    graph = scorers[suffix, False, 1].graph
    rows = np.full((BATCH, 3), -1)
    rows[:, 0] = 0
    rows[0] = [99, 0, 2]
    with pytest.raises(ValueError, match=r"cannot run on ids \(8, 3\), heads \(8, 3\)") as caught:
        graph.run(ids=np.zeros((BATCH, 3), "int32"), heads=rows)
    assert "\n" not in str(caught.value)


def test_other_graphs_raise(files, tmp_path):
    graphs.write_onnx(tmp_path / "parser.onnx")
    graph = runtime.load(tmp_path / "parser.onnx")
    with pytest.raises(ValueError, match="kind 'parser', which cannot score dependency trees"):
        runtime.ExportedTreeModel(graph)
    with pytest.raises(ValueError, match="cannot read sentences"):
        runtime.ExportedModel(runtime.load(files["onnx", True, 1]))


def test_model_without_a_vocabulary(tmp_path):
    model = TreeLSTM(60, 6, 10, seed=0)
    with pytest.raises(ValueError, match="no vocabulary with <unk> and <root>"):
        to_onnx(model, tmp_path / "model.onnx")
    exported = to_onnx(model, tmp_path / "model.onnx", vocabulary=WORDS)
    assert runtime.load(exported.path).metadata["vocabulary"] == WORDS
