"""Small whole files of every kind that the package reads, and what reads them."""

import contextlib
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import damages
from corpora import corpora_in

WORDS = ["<eos>", "<unk>", "the", "cat", "dog", "saw", "a", "N"]
SENTENCE = "the cat saw a dog"


class Target(NamedTuple):
    """The files of a case.

    Attributes:
        directory: where they are.
        paths: of those that are damaged, one a case.
        extra: what `read` needs beside them.
    """

    directory: Path
    paths: list
    extra: Any = None


class Kind(NamedTuple):
    """A kind of files.

    Attributes:
        name: string.
        make: function of a directory that writes whole files there, a `Target`.
        damage: function of `damages`.
        read: function of the target and of the path that is damaged: a reader of the package.
    """

    name: str
    make: Callable
    damage: Callable
    read: Callable


def either(*functions):
    return lambda draw, data: draw.choice(functions)(draw, data)


def a_file(name, content):
    def make(directory):
        path = directory / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return Target(directory, [path])

    return make


def a_json(name, content):
    return a_file(name, json.dumps(content))


# --- Text ----------------------------------------------------------------------------------------


def make_corpus(directory):
    for part in ("train", "valid", "test"):
        (directory / f"{part}.txt").write_text(f"{SENTENCE}\na dog saw the <unk>\n" * 5)
    return Target(directory, [directory / "train.txt"])


def read_corpus(target, path):
    from keras_onlstm import text

    text.corpus.load(target.directory)
    text.corpus.load(target.directory, level="character")


TREES = (
    "( (S (NP (DT The) (NN cat)) (VP (VBD saw) (NP (CD 75.3) (-NONE- *T*))) (. .)) )\n"
    "( (S (NP (DT A) (NN dog))\n     (VP (VBD fell))) )\n"
)


def make_trees(directory):
    folder = directory / "corpora" / "treebank" / "combined"
    folder.mkdir(parents=True)
    for number in (1, 2):
        (folder / f"wsj_000{number}.mrg").write_text(TREES)
    return Target(directory, [folder / "wsj_0002.mrg"])


def read_trees(target, path):
    from keras_onlstm.datasets import treebank

    with corpora_in(target.directory):
        treebank.load()


def make_brown(directory):
    folder = directory / "corpora" / "brown"
    folder.mkdir(parents=True)
    text = "\n\n\tThe/at cat/nn didn't/dod* see/vb 75.3/cd dogs/nns ./.\n\n\tIt/pps fell/vbd ./.\n"
    for name in ("ca01", "ca02"):
        (folder / name).write_text(text)
    (folder / "cats.txt").write_text("ca01 news\nca02 news\n")
    return Target(directory, [folder / "ca02"])


def read_brown(target, path):
    from keras_onlstm.datasets import brown

    with corpora_in(target.directory):
        brown.load()


def make_logic(directory):
    from keras_onlstm.datasets import propositional_logic as logic

    logic.save(logic.generate(60), directory)
    return Target(directory, [directory / "train2", directory / "test0", directory / "train0"])


def read_logic(target, path):
    from keras_onlstm.datasets import propositional_logic as logic

    logic.load(target.directory, verify_labels=True)


def make_pickles(directory):
    from keras_onlstm.datasets.syntactic_evaluation import ROWS

    names = sorted({name for row in ROWS for name in row.constructions})
    for number, name in enumerate(names):
        pairs = [("two cats", "two cat"), ("l'été", "a b")] * 2
        data = pickle.dumps({"plural": pairs, "b": [("c", "d", "e")]}, number % 6)
        (directory / f"{name}.pickle").write_bytes(data)
    return Target(directory, [directory / f"{name}.pickle" for name in names])


def read_pickles(target, path):
    from keras_onlstm.datasets import syntactic_evaluation

    syntactic_evaluation.load(target.directory)


def read_table(target, path):
    from keras_onlstm.datasets import syntactic_evaluation

    syntactic_evaluation.read_table(path)


TABLE = "construction\tcase\tgrammatical\tintrusive\tungrammatical\n" + "".join(
    f"agreement\tcase{n}\tthe cats {n}\t{'x' * (n % 2)}\tthe cat {n}\n" for n in range(6)
)


def read_lines(target, path):
    from keras_onlstm.utils.reading import lines

    with open(path, "rb") as file:
        list(lines(path, file))


def read_same_vocabulary(target, path):
    from keras_onlstm.training.corpora import check_same_vocabulary

    check_same_vocabulary(target.directory, WORDS, "the data")


# --- JSON of runs --------------------------------------------------------------------------------


CONLL_X = "1\tThe\t_\tDT\tDT\t_\t2\tdet\t_\t_\n2\tcat\t_\tNN\tNN\t_\t0\troot\t_\t_\n\n"
CONLL_U = (
    "# text = The cats' didn't\n1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n"
    "2-3\tcats'\t_\t_\t_\t_\t_\t_\t_\t_\n2\tcats\tcat\tNOUN\tNNS\t_\t0\troot\t_\t_\n"
    "2.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n3\t'\t'\tPART\tPOS\t_\t2\tcase\t_\t_\n\n"
)
COLUMNS = "The\tDT\t2\ncat\tNN\t3\nsaw\tVBD\t0\n"


def make_conll(directory):
    paths = []
    for number, text in enumerate((CONLL_X, CONLL_U, f"{COLUMNS}\n")):
        paths.append(directory / f"trees{number}.conll")
        paths[-1].write_text(text * 2)
    return Target(directory, paths)


def read_conll(target, path):
    from keras_onlstm.datasets import conll

    list(conll.read(path, invalid="skip"))
    for tree in conll.read(path):
        if tree.is_projective:
            assert tree.from_paths(tree.words, tree.paths()).heads == tree.heads


def make_dependency_treebank(directory):
    folder = directory / "corpora" / "dependency_treebank"
    folder.mkdir(parents=True)
    for number in range(176, 200):
        (folder / f"wsj_{number:04}.dp").write_text(COLUMNS + "\n" + COLUMNS)
    return Target(directory, [folder / "wsj_0177.dp"])


def read_dependency_treebank(target, path):
    from keras_onlstm.datasets import dependency_treebank

    with corpora_in(target.directory):
        dependency_treebank.load("test", normalized=True)


def make_questions(directory):
    words = ("cat", "dog", "bird", "fish", "horse")
    sentences = [f"<s> the {word} saw it </s>\n" for word in words]
    paths = [directory / f"Holmes.lm_format.{name}.txt" for name in ("questions", "answers")]
    paths[0].write_text("".join(sentences * 2))
    paths[1].write_text(sentences[2] + sentences[0])
    return Target(directory, paths)


def read_questions(target, path):
    from keras_onlstm.datasets import sentence_completion

    sentence_completion.load(target.directory)


def read_word_vectors(target, path):
    from keras_onlstm.text.vectors import read_vectors

    read_vectors(path, {"the", "cat"}, 3)


VECTORS = "the 0.5 -1e-3 2\ncat 1 2 3\ndog 4 5 6\n"


def arguments_of(script, **arguments):
    def read(target, path):
        __import__(script).EXPERIMENT.stored(target.directory)

    given = {"preset": "smoke", "data": None, "seed": 0, **arguments}

    def make(directory):
        values = __import__(script).PRESETS["smoke"]
        content = {"arguments": given, "values": values, "command": f"python {script}.py"}
        content["versions"] = {"python": "3.11"}
        return a_json("config.json", content)(directory)

    return Kind(script, make, damages.json_text, read)


def read_metrics(target, path):
    import language_modeling as script

    from keras_onlstm.utils.reading import read_json

    read_json(path, script.METRICS, "Train the run first.")


def read_results(target, path):
    from keras_onlstm.training.runs import origin

    origin(target.directory)


ROW = {"epoch": 1, "loss": 5.5, "penalty": 0.1, "val_perplexity": 99.5, "seconds": 3.25}
RESULTS = {"parameters": 1000, "validation_perplexity": 90.1, "test_perplexity": 88.5}


# --- Weights -------------------------------------------------------------------------------------


def make_arrays(suffix):
    def make(directory):
        from keras_onlstm import convert

        arrays = {"a.weight": np.arange(12.0).reshape(3, 4), "b": np.ones(2, "float32")}
        convert.write_arrays(directory / f"weights{suffix}", arrays)
        return Target(directory, [directory / f"weights{suffix}"])

    return make


def read_arrays(target, path):
    from keras_onlstm import convert

    convert.read_arrays(path)


def language_model(number=0):
    from keras_onlstm.models import LanguageModel

    model = LanguageModel(len(WORDS), 8, 12, 2, chunk_size=4, vocabulary=WORDS, seed=number)
    model.build()
    return model


def make_compact(directory):
    from keras_onlstm.models import Ensemble
    from keras_onlstm.models.eight_bit import save_eight_bit

    paths = [directory / "one.npz", directory / "two.npz"]
    save_eight_bit(language_model(), paths[0], {"from": "a test"})
    save_eight_bit(Ensemble([language_model(), language_model(1)]), paths[1])
    return Target(directory, paths)


def make_keras(directory):
    import keras

    from keras_onlstm import ONLSTM
    from keras_onlstm.models import Ensemble, PairClassifier

    classifier = PairClassifier(12, 7, embedding_dim=8, units=12, chunk_size=4, seed=0)
    classifier((np.ones((1, 2), "int32"),) * 2)
    ensemble = Ensemble([language_model(), language_model(1)])
    ensemble.build()
    inputs = keras.Input((None, 6))
    layers = keras.Model(inputs, ONLSTM(12, chunk_size=4)(inputs))
    paths = []
    for number, model in enumerate((language_model(), classifier, ensemble, layers)):
        paths.append(directory / f"model{number}.keras")
        model.save(paths[-1])
    return Target(directory, paths)


def make_tree_keras(directory):
    from keras_onlstm.models import BidirectionalLSTM, TreeLSTM

    words, paths = ["<root>", *WORDS], []
    models = [
        TreeLSTM(len(words), 4, 6, left_dependents=True, vocabulary=words),
        TreeLSTM(len(words), 4, 6, sequential=True, vocabulary=words),
        BidirectionalLSTM(len(words), 4, 6, vocabulary=words),
    ]
    for number, model in enumerate(models):
        model.build()
        paths.append(directory / f"trees{number}.keras")
        model.save(paths[-1])
    return Target(directory, paths)


def load_model(target, path):
    from keras_onlstm import loading

    loading.load_model(path)


def make_checkpoint(directory):
    import toy_runs

    trained = toy_runs.make_trainer(directory, epochs=2)
    trained.run()
    return Target(directory, [directory / "checkpoint.npz"], trained)


def resume(target, path):
    """A run that refuses to go on is what it was before."""
    import toy_runs

    before = toy_runs.bits(target.extra.model)
    try:
        target.extra.resume()
    except Exception:
        assert toy_runs.bits(target.extra.model) == before, "the model changed"
        raise


# --- Exported files ------------------------------------------------------------------------------

ABOUT = {"graph": "parser", "num_layers": 3, "members": [1, 2], "about": {"by": "hand"}}


def parse(target, path):
    from keras_onlstm.parser import Parser

    parser = Parser.load(path, threads=1)
    parser.parse(SENTENCE)
    with contextlib.suppress(ValueError):
        Parser.load(path, layer=1).parse(SENTENCE)


def make_onnx(directory):
    import graphs

    graphs.write_onnx(directory / "model.onnx", {**ABOUT, "vocabulary": graphs.VOCABULARY})
    return Target(directory, [directory / "model.onnx"])


def metadata_of_onnx(draw, data):
    import onnx

    from keras_onlstm.runtime import metadata

    model = onnx.load_from_string(data)
    text = damages.json_text(draw, model.metadata_props[0].value.encode())
    onnx.helper.set_model_props(model, {metadata.KEY: text.decode(errors="replace")})
    return model.SerializeToString()


def make_tflite(directory):
    import graphs
    from keras_onlstm.runtime import metadata

    about = {**ABOUT, "vocabulary": graphs.VOCABULARY}
    (directory / "model.tflite").write_bytes(metadata.pack(graphs.tflite(batch=2), about))
    return Target(directory, [directory / "model.tflite"])


def metadata_of_tflite(draw, data):
    """Behind a model that is whole: a damaged one does not get past the checksum."""
    start = data.rindex(b"PK\x03\x04")
    return data[:start] + damages.archive(draw, data[start:])


# -------------------------------------------------------------------------------------------------

RECURRENT = {"recurrent": "onlstm", "max_words": None, "devices": 1}
KINDS = {
    kind.name: kind
    for kind in (
        Kind("corpus", make_corpus, either(damages.spans, damages.words), read_corpus),
        Kind("mrg", make_trees, either(damages.spans, damages.words), read_trees),
        Kind("brown", make_brown, either(damages.spans, damages.words), read_brown),
        Kind("logic", make_logic, either(damages.spans, damages.words), read_logic),
        Kind("pickle", make_pickles, either(damages.spans, damages.pickled), read_pickles),
        Kind("tsv", a_file("mine.tsv", TABLE), either(damages.spans, damages.words), read_table),
        Kind("lines", a_file("s.txt", f"{SENTENCE}\n" * 3), damages.spans, read_lines),
        Kind(
            "vocabulary",
            a_file("vocabulary.txt", "".join(f"{word}\n" for word in WORDS)),
            either(damages.spans, damages.words),
            read_same_vocabulary,
        ),
        Kind("conll", make_conll, either(damages.spans, damages.words), read_conll),
        Kind(
            "dependency_treebank",
            make_dependency_treebank,
            either(damages.spans, damages.words),
            read_dependency_treebank,
        ),
        Kind("questions", make_questions, either(damages.spans, damages.words), read_questions),
        Kind(
            "vectors",
            a_file("vectors.txt", VECTORS),
            either(damages.spans, damages.words),
            read_word_vectors,
        ),
        arguments_of("logic_inference", recurrent="onlstm"),
        arguments_of("language_modeling", **RECURRENT, characters=False),
        arguments_of("syntactic_evaluation", **RECURRENT, brown=False),
        arguments_of(
            "dependency_language_model", trees="chain", left_dependents=False, vectors=None
        ),
        Kind(
            "metrics",
            a_json("metrics.json", {"epochs": [ROW] * 2}),
            damages.json_text,
            read_metrics,
        ),
        Kind("results", a_json("results.json", RESULTS), damages.json_text, read_results),
        Kind("npz", make_arrays(".npz"), damages.archive, read_arrays),
        Kind("safetensors", make_arrays(".safetensors"), damages.spans, read_arrays),
        Kind("compact", make_compact, damages.archive, load_model),
        Kind("keras", make_keras, damages.archive, load_model),
        Kind("tree_keras", make_tree_keras, damages.archive, load_model),
        Kind("checkpoint", make_checkpoint, damages.archive, resume),
        Kind("onnx", make_onnx, either(damages.spans, metadata_of_onnx), parse),
        Kind("tflite", make_tflite, either(damages.spans, metadata_of_tflite), parse),
    )
}
