"""The directory of a run: its config.json, its lock, and the origin of its model."""

import json

import pytest

from keras_onlstm.runs.directory import check_new, has_begun, origin, read_config, running

pytestmark = pytest.mark.backend("tensorflow")  # independent of the backend


def test_new_run_writes_config_json(tmp_path):
    output = tmp_path / "run"
    check_new(output)
    with running(output, {"seed": 7}, False):
        content = read_config(output)
        assert content["seed"] == 7 and content["versions"]["backend"] == "tensorflow"
        assert not has_begun(output)
        with pytest.raises(BlockingIOError):
            check_new(output)
    (output / "checkpoint.npz").touch()
    assert has_begun(output) and not has_begun(output, ["checkpoint.npz"])
    with running(output, {"seed": 8}, True):
        pass
    assert read_config(output) == content


def test_used_directory_is_rejected(tmp_path):
    """With --resume as the remedy where runs of its kind can be resumed."""
    content, prepared = {"seed": 7}, tmp_path / "prepared"
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").touch()
    (tmp_path / "file").touch()
    for begin in (check_new, lambda directory: running(directory, content).__enter__()):
        with pytest.raises(FileExistsError, match=r"exists already\. Move it away, or give"):
            begin(tmp_path / "run")
        with pytest.raises(FileExistsError, match="is not a directory"):
            begin(tmp_path / "file")
    with pytest.raises(FileExistsError, match="Move it away"):
        check_new(tmp_path / "run", resumes=True)
    (tmp_path / "run" / "config.json").touch()
    with pytest.raises(FileExistsError, match="Add --resume"):
        check_new(tmp_path / "run", resumes=True)
    with pytest.raises(FileExistsError, match="Add --resume"):
        running(tmp_path / "run", content, False).__enter__()
    prepared.mkdir()
    (prepared / "ids").mkdir()
    check_new(prepared, ["ids"])
    with running(prepared, content, False, ["ids"]):
        pass


def test_origin_of_a_model(tmp_path):
    (tmp_path / "config.json").write_text('{"arguments": {}}')  # of the earliest versions
    assert origin(tmp_path) == {}
    (tmp_path / "config.json").write_text('{"command": "python a.py --preset large"}')
    scores = {"parameters": 7, "validation_perplexity": 9.5, "test_perplexity": 8.5}
    (tmp_path / "results.json").write_text(json.dumps({**scores, "recurrent": "lstm"}))
    assert origin(tmp_path) == {"command": "python a.py --preset large", **scores}
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(ValueError, match=r"results\.json: parameters is missing\. Evaluate the"):
        origin(tmp_path)


def test_ctrl_c_names_resume_where_the_run_can_be_resumed(tmp_path):
    for resume, message in (
        (None, ()),
        (False, ("Run the same command with --resume to resume.",)),
    ):
        output = tmp_path / str(resume)
        with pytest.raises(KeyboardInterrupt) as caught, running(output, {"seed": 7}, resume):
            raise KeyboardInterrupt
        assert caught.value.args == message
