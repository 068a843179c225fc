"""One of the kills of fuzz_runs.py."""

import fuzz_runs
import pytest


# On JAX each of these processes would compile for minutes; the command kills there too.
@pytest.mark.backend("tensorflow")
def test_a_killed_run_ends_as_one_that_was_not_killed(tmp_path):
    assert fuzz_runs.fuzz("logic_inference", 1, 0, tmp_path) == []
    state = fuzz_runs.results(tmp_path / "killed 1")[1]
    assert state["epoch"] == 1 and len(state["history"]) == 1
    assert not list((tmp_path / "killed 1").glob(".*.part"))
