"""The component of spaCy pipelines, on a blank English one."""

import subprocess
import sys

import numpy as np
import pytest

from keras_onlstm import Parser
from keras_onlstm.parsing import brackets

spacy = pytest.importorskip("spacy")
pytestmark = pytest.mark.keras_free
TEXT = "The company said it will sell its stake. Prices fell, and it rained!"


@pytest.fixture(scope="module")
def nlp():
    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    pipeline.add_pipe("onlstm")
    return pipeline


def test_trees_are_those_of_the_parser(nlp):
    parser, doc = Parser.load(), nlp(TEXT)
    sentences = list(doc.sents)
    assert len(sentences) == 2
    for sentence in sentences:
        words = [token.text for token in sentence if not token.is_punct]
        tree = parser.parse(words)
        assert sentence._.tree == tree and sentence._.parse_string == brackets(tree)
        np.testing.assert_allclose(sentence._.distances, parser.distances(words, "both"), atol=1e-5)


def test_a_sentence_without_words(nlp):
    doc = spacy.tokens.Doc(nlp.vocab, ["Prices", "fell", "...", "!"], sent_starts=[1, 0, 1, 0])
    first, second = nlp.get_pipe("onlstm")(doc).sents
    assert first._.parse_string == "(X Prices fell)"
    assert second._.tree is None and second._.parse_string == ""
    assert second._.constituents == [] and second._.distances.shape[-1] == 0


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


def test_a_pipeline_is_kept(nlp, tmp_path):
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    expected, found = (
        [s._.parse_string for s in pipeline(TEXT).sents] for pipeline in (nlp, again)
    )
    assert expected == found


def test_its_options():
    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    pipeline.add_pipe("onlstm", config={"method": "greedy", "layer": 2, "gate": "forget"})
    words = ["the", "company", "said", "it", "will", "sell", "its", "stake"]
    (sentence,) = pipeline(" ".join(words)).sents
    expected = Parser.load(method="greedy", layer=2, gate="forget").parse(words)
    assert sentence._.tree == expected


def test_mistakes(nlp):
    pipeline = spacy.blank("en")
    pipeline.add_pipe("onlstm")
    with pytest.raises(ValueError, match=r'has no sentences\. Put .*"sentencizer"'):
        pipeline("Prices fell.")
    doc = nlp("Prices fell. It rained.")
    with pytest.raises(ValueError, match="is no sentence that the component onlstm parsed"):
        _ = doc[:2]._.tree
    with pytest.raises(FileNotFoundError, match=r"none\.onnx: no such model"):
        spacy.blank("en").add_pipe("onlstm", config={"model": "none.onnx"})


def test_without_spacy():
    program = "import sys; sys.modules['spacy'] = None; import keras_onlstm.spacy_component"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "pip install 'keras-onlstm[parse]'" in result.stderr.splitlines()[-1]
