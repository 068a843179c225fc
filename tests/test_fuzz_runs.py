"""One of the kills of fuzz_runs.py, and that it finds what is wrong."""

import pytest

import fuzz_runs
from fuzz_runs import broken, fuzz, targets


# On JAX each of these processes would compile for minutes; the command kills there too.
@pytest.mark.backend("tensorflow")
def test_a_kill(tmp_path):
    counts, findings = fuzz(targets("tensorflow")[0], 1, 0, tmp_path)
    assert findings == [] and sum(counts.values()) == 1
    state = fuzz_runs.arrays_of(tmp_path / "killed 1")[1]
    assert state["epoch"] == 1 and len(state["history"]) == 1
    left = [path.name for path in (tmp_path / "killed 1").iterdir()]
    assert not [name for name in left if name.startswith(".")]


def test_what_is_not_whole_is_seen(tmp_path):
    (tmp_path / "metrics.json").write_text('{"epochs": [')
    (tmp_path / "checkpoint.npz").write_bytes(b"PK")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "parser.onnx").write_bytes(b"half")
    (tmp_path / ".best.keras.aaaa.part").mkdir()
    (tmp_path / ".best.keras.aaaa.part" / "best.keras").write_bytes(b"half")
    names = [line.partition(":")[0] for line in broken(tmp_path)]
    assert names == ["checkpoint.npz", "metrics.json", "parser.onnx"]


def test_a_run_that_ends_otherwise_is_seen(tmp_path, monkeypatch):
    """Without a process: a run whose results are another time other ones."""
    results = iter([{"the checkpoint": 1}, {"the checkpoint": 2}])
    monkeypatch.setattr(fuzz_runs, "finish", lambda *_: None)
    monkeypatch.setattr(fuzz_runs, "kill", lambda *_: (True, "anywhere"))
    monkeypatch.setattr(fuzz_runs, "results_of", lambda _: next(results))
    counts, findings = fuzz(targets("tensorflow")[0], 1, 0, tmp_path)
    assert counts == {"anywhere": 1} and len(findings) == 1
    assert "logic_inference, tensorflow: the checkpoint differs" in findings[0]
