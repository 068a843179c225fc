"""Scripts that draw a user's run do not overwrite the pictures of the documentation."""

import numpy as np
import pytest

from helpers import commands
from helpers.commands import ROOT
from keras_onlstm.datasets import propositional_logic as logic
from keras_onlstm.models import PRPN, PairClassifier

DOCS = ROOT / "docs"
WORDS = ["<eos>", "<unk>", "the", "company", "said"]
SCRIPTS = {
    "draw_attention": "prpn_attention.svg",
    "draw_master_gates": "master_gates.png",
}


def trained(name, run):
    """A run whose model `docs/<name>.py` draws."""
    if name == "draw_attention":
        model = PRPN(len(WORDS), 8, 6, slots=4, lookback=2, vocabulary=WORDS)
        model.build((None, None))
    else:
        size = 1 + len(logic.TOKENS)
        model = PairClassifier(size, len(logic.LABELS), embedding_dim=4, units=8, chunk_size=4)
        model((np.ones((1, 1), "int32"), np.ones((1, 1), "int32")))
    run.mkdir()
    model.save(run / "best.keras")


@pytest.mark.parametrize("name", SCRIPTS)
def test_pictures_go_into_the_run_or_where_output_names(name, monkeypatch, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    with commands.imported(DOCS, name) as (script,):
        draw = commands.runner(DOCS / f"{name}.py", script, monkeypatch, capsys)
        run, other = tmp_path / "run", tmp_path / f"other{SCRIPTS[name][-4:]}"
        trained(name, run)
        tracked = commands.contents(DOCS / "images")
        status, printed, errors = draw(run)
        drawn = run / SCRIPTS[name]
        assert (status, printed, errors) == (0, f"{drawn}\n", "")
        content = drawn.read_bytes()
        drawn.unlink()
        assert draw(run, "--output", other)[0] == 0
        assert other.read_bytes() == content and not drawn.exists()
        assert commands.contents(DOCS / "images") == tracked


@pytest.mark.parametrize(
    ("name", "other", "reason"),
    [
        ("draw_attention", "draw_master_gates", "PairClassifier, not a PRPN"),
        ("draw_master_gates", "draw_attention", "PRPN, not a classifier of ON-LSTM"),
    ],
)
def test_a_run_of_another_model_is_refused(name, other, reason, monkeypatch, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    with commands.imported(DOCS, name) as (script,):
        draw = commands.runner(DOCS / f"{name}.py", script, monkeypatch, capsys)
        trained(other, tmp_path / "run")
        commands.refused(f"{name}.py", draw(tmp_path / "run"), reason)
        assert [path.name for path in (tmp_path / "run").iterdir()] == ["best.keras"]
