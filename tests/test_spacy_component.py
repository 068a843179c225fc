"""The component of spaCy pipelines, on a blank English one."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from helpers.commands import environment
from keras_onlstm import Parser
from keras_onlstm.parsing import brackets

spacy = pytest.importorskip("spacy")
DocBin, Doc = spacy.tokens.DocBin, spacy.tokens.Doc
pytestmark = pytest.mark.keras_free
TEXT = "The company said it will sell its stake. Prices fell, and it rained!"
TEXTS = [TEXT, "", "...", "One", "f(x) isn't new.  (It rained.)\n\nPrices fell.", "It rained. " * 2]


@pytest.fixture(scope="module")
def nlp():
    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    pipeline.add_pipe("onlstm")
    return pipeline


def test_trees_match_parser(nlp):
    parser, doc = Parser.load(), nlp(TEXT)
    sentences = list(doc.sents)
    assert len(sentences) == 2
    for sentence in sentences:
        words = [token.text for token in sentence if not token.is_punct]
        tree = parser.parse(words)
        assert sentence._.tree == tree and sentence._.parse_string == brackets(tree)
        np.testing.assert_allclose(sentence._.distances, parser.distances(words, "both"), atol=1e-5)


def test_constituents_are_spans(nlp):
    sentence = list(nlp(TEXT).sents)[1]
    found = [[t.text for t in span if not t.is_punct] for span in sentence._.constituents]
    assert found == [subtree.leaves() for subtree in sentence._.tree.subtrees()]
    assert found[0] == ["Prices", "fell", "and", "it", "rained"]


def test_many_documents(nlp):
    texts = ["Prices fell.", "", "It rained. It snowed a lot."] * 3
    docs = list(nlp.pipe(texts, batch_size=4))
    expected = [s._.parse_string for text in texts for s in nlp(text).sents]
    assert [s._.parse_string for doc in docs for s in doc.sents] == expected
    assert expected[:2] == ["(X Prices fell)", "(X It rained)"]


def without_words(nlp):
    """A document whose second of three sentences has no words."""
    words = ["Prices", "fell", "...", "!", "It", "rained", "again"]
    starts = [word in ("Prices", "...", "It") for word in words]
    return nlp.get_pipe("onlstm")(Doc(nlp.vocab, words, sent_starts=starts))


def results(*docs):
    """The results of the component for each sentence."""
    return [
        (
            sentence.text,
            sentence._.tree,
            sentence._.parse_string,
            [(span.start - sentence.start, span.text) for span in sentence._.constituents],
            sentence._.distances.dtype,
            sentence._.distances.tolist(),
        )
        for doc in docs
        for sentence in doc.sents
    ]


def through_bytes(docs):
    return [Doc(doc.vocab).from_bytes(doc.to_bytes()) for doc in docs]


def through_bin(docs):
    stored = DocBin(store_user_data=True, docs=docs).to_bytes()
    return list(DocBin().from_bytes(stored).get_docs(docs[0].vocab))


def of_sentences(docs):
    return [span.as_doc(copy_user_data=True) for doc in docs for span in doc.sents]


def of_slices(docs):
    """Two slices of each document, the second without its first sentence."""
    parts = []
    for doc in docs:
        starts = [sentence.start for sentence in doc.sents] + [len(doc)] * 2
        parts += [doc[: starts[1]], doc[starts[1] :]]
    return [part.as_doc(copy_user_data=True) for part in parts if len(part)]


@pytest.mark.parametrize(
    "way",
    [
        through_bytes,
        through_bin,
        of_sentences,
        of_slices,
        lambda docs: [doc.copy() for doc in docs],
        lambda docs: pickle.loads(pickle.dumps(docs)),
        lambda docs: [Doc.from_docs(docs)],
        lambda docs: [Doc.from_docs(docs, ensure_whitespace=False)],
        lambda docs: through_bin([Doc.from_docs(of_slices(through_bytes(docs)))]),
    ],
)
def test_copies_keep_trees(nlp, way):
    docs = [*nlp.pipe(TEXTS), without_words(nlp)]
    expected = results(*docs)
    assert [len(list(doc.sents)) for doc in docs] == [2, 0, 1, 1, 3, 2, 3]
    empty = [rest for _, tree, *rest in expected if tree is None]
    assert [rest[:2] for rest in empty] == [["", []]] * 2
    assert results(*way(docs)) == expected


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(nlp, method, tmp_path):
    """In a new process, because libraries of other tests may have threads, which forks lose."""
    program = (
        "import multiprocessing, sys\n"
        "import spacy\n"
        "method, path, *texts = sys.argv[1:]\n"
        "multiprocessing.set_start_method(method)\n"
        "nlp = spacy.blank('en')\n"
        "nlp.add_pipe('sentencizer')\n"
        "nlp.add_pipe('onlstm')\n"
        "docs = nlp.pipe(texts, n_process=2, batch_size=2)\n"
        "spacy.tokens.DocBin(store_user_data=True, docs=docs).to_disk(path)\n"
    )
    path = tmp_path / "docs.spacy"
    run([sys.executable, "-c", program, method, path, *TEXTS])
    docs = list(DocBin().from_disk(path).get_docs(nlp.vocab))
    assert len(docs) == len(TEXTS)
    for found, expected in zip(results(*docs), results(*nlp.pipe(TEXTS)), strict=True):
        assert found[:-1] == expected[:-1]
        # In other batches the products round differently.
        np.testing.assert_allclose(found[-1], expected[-1], rtol=1e-5, atol=1e-6)


def run(command):
    """The printed lines of a command."""
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_stored_documents_do_not_need_a_pipeline(nlp, tmp_path):
    path = tmp_path / "docs.spacy"
    DocBin(store_user_data=True, docs=nlp.pipe(TEXTS)).to_disk(path)
    program = (
        "import sys\n"
        "import spacy\n"
        "import keras_onlstm.spacy_component\n"
        "for doc in spacy.tokens.DocBin().from_disk(sys.argv[1]).get_docs(spacy.Vocab()):\n"
        "    for sentence in doc.sents: print(sentence._.parse_string)\n"
    )
    expected = [sentence._.parse_string for doc in nlp.pipe(TEXTS) for sentence in doc.sents]
    assert run([sys.executable, "-c", program, path]) == expected


def test_slices_of_two_documents_are_kept_separate(nlp):
    """The first sentences of both documents have equal offsets."""
    first, second = (
        nlp("It will sell its stake. It rained."),
        nlp("Prices of oil fell now. It is so."),
    )
    parts = [next(first.sents), list(second.sents)[1]]
    assert parts[0].end_char == parts[1].start_char - 1  # spaCy shifts by as much
    expected = results(*(part.as_doc(copy_user_data=True) for part in parts))
    joined = Doc.from_docs([part.as_doc(copy_user_data=True) for part in parts])
    assert results(joined) == expected


def test_parsing_again_replaces_stored_sentences(nlp):
    doc = nlp("Prices fell. It rained.")
    old = list(doc.sents)
    doc[3].is_sent_start = False
    nlp.get_pipe("onlstm")(doc)
    assert [s._.parse_string for s in doc.sents] == [
        brackets(Parser.load().parse(["Prices", "fell", "It", "rained"]))
    ]
    with pytest.raises(ValueError, match="is not a sentence"):
        _ = old[0]._.tree


def test_tokens_merged_after_parsing(nlp):
    doc = nlp("Prices fell in New York.")
    tree = next(doc.sents)._.tree
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[3:5])
    (sentence,) = doc.sents
    assert sentence._.tree == tree
    assert sentence._.constituents[0].text == "Prices fell in New York"


def test_component_options(tmp_path):
    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    pipeline.add_pipe("onlstm", config={"method": "greedy", "layer": 2, "gate": "forget"})
    words = ["the", "company", "said", "it", "will", "sell", "its", "stake"]
    (sentence,) = pipeline(" ".join(words)).sents
    expected = Parser.load(method="greedy", layer=2, gate="forget").parse(words)
    assert sentence._.tree == expected
    pipeline.to_disk(tmp_path)
    (sentence,) = spacy.load(tmp_path)(" ".join(words)).sents
    assert sentence._.tree == expected


def test_errors(nlp):
    pipeline = spacy.blank("en")
    pipeline.add_pipe("onlstm")
    with pytest.raises(ValueError, match=r'has no sentence boundaries\. Add .*"sentencizer"'):
        pipeline("Prices fell.")
    doc = nlp("Prices fell. It rained.")
    with pytest.raises(ValueError, match=r"'Prices fell' is not a sentence that the .* onlstm"):
        _ = doc[:2]._.tree
    copies = [
        next(doc.sents).as_doc(),
        Doc(nlp.vocab).from_bytes(doc.to_bytes(exclude=["user_data"])),
    ]
    for copy in copies:
        with pytest.raises(ValueError, match=r"as_doc\(copy_user_data=True\), DocBin\(store_user"):
            _ = next(copy.sents)._.tree
    with pytest.raises(FileNotFoundError, match=r"none\.onnx: no such model"):
        spacy.blank("en").add_pipe("onlstm", config={"model": "none.onnx"})


def test_missing_spacy_raises():
    program = "import sys; sys.modules['spacy'] = None; import keras_onlstm.spacy_component"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    line = result.stderr.splitlines()[-1]
    assert "component onlstm needs spacy (" in line and line.endswith("): pip install spacy")
