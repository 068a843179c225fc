"""Scripts in docs/ that draw pictures of a run."""

import numpy as np
import pytest

from helpers import commands
from helpers.commands import ROOT
from keras_onlstm.datasets import propositional_logic as logic
from keras_onlstm.models import PRPN, PairClassifier

DOCS = ROOT / "docs"
WORDS = ["<eos>", "<unk>", "the", "company", "said"]
SCRIPTS = {"draw_attention": "prpn_attention.svg", "draw_master_gates": "master_gates.png"}


def save_run(name, run):
    """Saves a run with a model that `docs/<name>.py` can draw."""
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
def test_picture_is_written_to_run_or_output(name, monkeypatch, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    with commands.imported(DOCS, name) as (script,):
        draw = commands.runner(DOCS / f"{name}.py", script, monkeypatch, capsys)
        run, other = tmp_path / "run", tmp_path / f"other{SCRIPTS[name][-4:]}"
        save_run(name, run)
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
        ("draw_attention", "draw_master_gates", "expected a PRPN, got a PairClassifier"),
        ("draw_master_gates", "draw_attention", "expected an ON-LSTM classifier, got a PRPN"),
    ],
)
def test_rejects_run_of_another_model(name, other, reason, monkeypatch, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    with commands.imported(DOCS, name) as (script,):
        draw = commands.runner(DOCS / f"{name}.py", script, monkeypatch, capsys)
        save_run(other, tmp_path / "run")
        commands.refused(f"{name}.py", draw(tmp_path / "run"), reason)
        assert [path.name for path in (tmp_path / "run").iterdir()] == ["best.keras"]
