"""Small valid files of every format that the package reads, and functions that read them."""

import json
import pickle
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from helpers import corruption
from helpers.corpora import corpora_in
from keras_onlstm import loading, text
from keras_onlstm.datasets import conll, syntactic_evaluation, treebank
from keras_onlstm.datasets import propositional_logic as logic
from keras_onlstm.runs.language_model import LanguageModelConfig
from keras_onlstm.runs.tree_lstm import TreeLSTMConfig
from keras_onlstm.runtime import metadata

WORDS = ["<eos>", "<unk>", "the", "cat", "dog", "saw", "a", "N"]
SENTENCE = "the cat saw a dog"


class Kind(NamedTuple):
    """A file format."""

    name: str
    make: Callable  # writes valid files into a directory; returns those to corrupt
    corrupt: Callable  # function of `corruption`
    read: Callable  # reads the corrupted file at a path


def make_corpus(directory):
    for part in ("train", "valid", "test"):
        (directory / f"{part}.txt").write_text(f"{SENTENCE}\na dog saw the <unk>\n" * 5)
    return [directory / "train.txt"]


def read_corpus(path):
    text.corpus.load(path.parent)
    text.corpus.load(path.parent, level="character")


def read_trees(path):
    with corpora_in(path.parents[3]):
        treebank.load()


TREES = (
    "( (S (NP (DT The) (NN cat)) (VP (VBD saw) (NP (CD 75.3) (-NONE- *T*))) (. .)) )\n"
    "( (S (NP (DT A) (NN dog))\n     (VP (VBD fell))) )\n"
)


def make_trees(directory):
    folder = directory / "corpora" / "treebank" / "combined"
    folder.mkdir(parents=True)
    for number in (1, 2):
        (folder / f"wsj_000{number}.mrg").write_text(TREES)
    return [folder / "wsj_0002.mrg"]


def make_logic(directory):
    logic.save(logic.generate(60), directory)
    return [directory / "train2", directory / "test0", directory / "train0"]


def make_pickles(directory):
    names = sorted({name for row in syntactic_evaluation.ROWS for name in row.constructions})
    for number, name in enumerate(names):
        pairs = [("two cats", "two cat"), ("l'été", "a b")] * 2
        data = pickle.dumps({"plural": pairs, "b": [("c", "d", "e")]}, number % 6)
        (directory / f"{name}.pickle").write_bytes(data)
    return [directory / f"{name}.pickle" for name in names]


CONLL_X = "1\tThe\t_\tDT\tDT\t_\t2\tdet\t_\t_\n2\tcat\t_\tNN\tNN\t_\t0\troot\t_\t_\n\n"
CONLL_U = (
    "# text = The cats' didn't\n1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n"
    "2-3\tcats'\t_\t_\t_\t_\t_\t_\t_\t_\n2\tcats\tcat\tNOUN\tNNS\t_\t0\troot\t_\t_\n"
    "2.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n3\t'\t'\tPART\tPOS\t_\t2\tcase\t_\t_\n\n"
)
COLUMNS = "The\tDT\t2\ncat\tNN\t3\nsaw\tVBD\t0\n"


def make_conll(directory):
    paths = []
    for number, trees in enumerate((CONLL_X, CONLL_U, f"{COLUMNS}\n")):
        paths.append(directory / f"trees{number}.conll")
        paths[-1].write_text(trees * 2)
    return paths


def read_conll(path):
    list(conll.read(path, invalid="skip"))
    for tree in conll.read(path):
        if tree.is_projective:
            assert tree.from_paths(tree.words, tree.paths()).heads == tree.heads


def config_of(config, earlier=False):
    """The format `config.json` of a run, of this or an earlier version."""

    def make(directory):
        content = config.from_preset("debug").to_json() | {"versions": {"python": "3.11"}}
        if earlier:
            values = {name: content.pop(name) for name in ("epochs", "units")}
            del content["model"]
            content = {"arguments": content, "values": values}
        (directory / "config.json").write_text(json.dumps(content))
        return [directory / "config.json"]

    name = f"{'earlier ' if earlier else ''}{config.model}"
    return Kind(name, make, corruption.json_text, lambda path: config.load(path.parent))


def make_arrays(directory):
    path = directory / "weights.npz"
    np.savez(path, **{"a.weight": np.arange(12.0).reshape(3, 4), "b": np.ones(2, "float32")})
    return [path]


def read_arrays(path):
    from keras_onlstm import convert

    convert.read_arrays(path)


def language_model(number=0):
    from keras_onlstm.models import LanguageModel

    model = LanguageModel(len(WORDS), 8, 12, 2, chunk_size=4, vocabulary=WORDS, seed=number)
    model.build()
    return model


def make_compact(directory):
    from keras_onlstm.models import Ensemble
    from keras_onlstm.models.ensemble import save_eight_bit

    paths = [directory / "one.npz", directory / "two.npz"]
    save_eight_bit(language_model(), paths[0], {"from": "a test"})
    save_eight_bit(Ensemble([language_model(), language_model(1)]), paths[1])
    return paths


def make_keras(directory):
    import keras

    from keras_onlstm import ONLSTM
    from keras_onlstm.models import BidirectionalLSTM, Ensemble, PairClassifier, TreeLSTM

    classifier = PairClassifier(12, 7, embedding_dim=8, units=12, chunk_size=4, seed=0)
    classifier((np.ones((1, 2), "int32"),) * 2)
    inputs = keras.Input((None, 6))
    words = ["<root>", *WORDS]
    models = [
        language_model(),
        classifier,
        Ensemble([language_model(), language_model(1)]),
        keras.Model(inputs, ONLSTM(12, chunk_size=4)(inputs)),
        TreeLSTM(len(words), 4, 6, left_dependents=True, vocabulary=words),
        TreeLSTM(len(words), 4, 6, sequential=True, vocabulary=words),
        BidirectionalLSTM(len(words), 4, 6, vocabulary=words),
    ]
    for number, model in enumerate(models):
        if not model.built:
            model.build()
        model.save(directory / f"model{number}.keras")
    return sorted(directory.glob("*.keras"))


trainers = {}


def make_checkpoint(directory):
    from helpers import tiny_runs

    trained = tiny_runs.make_trainer(directory, epochs=2)
    trained.run()
    trainers[directory / "checkpoint.npz"] = trained
    return [directory / "checkpoint.npz"]


def resume(path):
    """Resumes a run. A run that is rejected must not change."""
    from helpers import tiny_runs

    model = trainers[path].model
    before = tiny_runs.bits(model)
    try:
        trainers[path].resume()
    except Exception:
        assert tiny_runs.bits(model) == before, "the model changed"
        raise


ABOUT = {"graph": "parser", "num_layers": 3, "members": [1, 2], "about": {"by": "hand"}}


def parse(path):
    from keras_onlstm.parser import Parser

    Parser.load(path, threads=1).parse(SENTENCE)


def make_onnx(directory):
    from helpers import graphs

    graphs.write_onnx(directory / "model.onnx", {**ABOUT, "vocabulary": graphs.VOCABULARY})
    return [directory / "model.onnx"]


def metadata_of_onnx(draw, data):
    if draw.random() < 0.5:
        return corruption.spans(draw, data)
    import onnx

    model = onnx.load_from_string(data)
    text = corruption.json_text(draw, model.metadata_props[0].value.encode())
    onnx.helper.set_model_props(model, {metadata.KEY: text.decode(errors="replace")})
    return model.SerializeToString()


def make_tflite(directory):
    from helpers import graphs

    about = {**ABOUT, "vocabulary": graphs.VOCABULARY}
    (directory / "model.tflite").write_bytes(metadata.pack(graphs.tflite(batch=2), about))
    return [directory / "model.tflite"]


def metadata_of_tflite(draw, data):
    """Corrupts only the metadata after the model, because the model has a checksum."""
    if draw.random() < 0.5:
        return corruption.spans(draw, data)
    start = data.rindex(b"PK\x03\x04")
    return data[:start] + corruption.archive(draw, data[start:])


ALL = [
    Kind("corpus", make_corpus, corruption.words, read_corpus),
    Kind("mrg", make_trees, corruption.words, read_trees),
    Kind("logic", make_logic, corruption.words, lambda path: logic.load(path.parent, True)),
    Kind("pickle", make_pickles, corruption.spans, lambda p: syntactic_evaluation.load(p.parent)),
    Kind("conll", make_conll, corruption.words, read_conll),
    config_of(LanguageModelConfig),
    config_of(TreeLSTMConfig),
    config_of(LanguageModelConfig, earlier=True),
    Kind("npz", make_arrays, corruption.archive, read_arrays),
    Kind("compact", make_compact, corruption.archive, loading.load_model),
    Kind("keras", make_keras, corruption.archive, loading.load_model),
    Kind("checkpoint", make_checkpoint, corruption.archive, resume),
    Kind("onnx", make_onnx, metadata_of_onnx, parse),
    Kind("tflite", make_tflite, metadata_of_tflite, parse),
]
KINDS = {kind.name: kind for kind in ALL}
