"""Processing of large files in several processes, shard by shard. It can be resumed."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from keras_onlstm.scale import processes
from keras_onlstm.scale.processes import Counts
from keras_onlstm.scale.shards import FORMATS, cut
from keras_onlstm.scale.tasks import Task
from keras_onlstm.utils import StrPath
from keras_onlstm.utils.files import (
    LOCK,
    cannot_write,
    is_left_over,
    locked,
    remove_left_overs,
    write_json,
)
from keras_onlstm.utils.validation import check_integer
from keras_onlstm.version import __version__

__all__ = ["process"]

PLAN = "corpus.json"


def _plan(paths, shards, task, rows):
    """The contents of `PLAN`: the files, with sizes and times, and the task."""
    stats = [os.stat(path) for path in paths]
    files = [
        {"path": str(Path(path).resolve()), "bytes": stat.st_size, "changed": stat.st_mtime_ns}
        for path, stat in zip(paths, stats, strict=True)
    ]
    load = {name: str(value) for name, value in task.load.items()}
    plan = {"files": files, "rows": rows, "version": __version__, "shards": len(shards)}
    plan["task"] = type(task).__name__
    return {**plan, **task._replace(load=load)._asdict()}


def _check_plan(output, plan):
    """Whether the run is resumed. Raises `ValueError` if its plan has changed."""
    path = output / PLAN
    if path.exists():
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            stored = None
        if not isinstance(stored, dict):
            raise ValueError(f"{path}: is damaged. Name another --output.")
        for name, value in plan.items():
            if stored.get(name) != value:
                raise ValueError(
                    f"{output}: was begun with other {name}. Go on with the same command and the "
                    "same files, or name another --output."
                )
    elif any(found.name != LOCK and not is_left_over(found) for found in output.iterdir()):
        raise FileExistsError(f"{output}: has other files in it. Name another --output.")
    else:
        write_json(path, plan)
        return False
    return True


def _run(jobs, task, workers, ray):
    if ray is None:
        return processes.run(jobs, task, workers)
    from keras_onlstm.scale import ray_cluster

    return ray_cluster.run(jobs, task, workers, ray)


def process(
    paths: Sequence[StrPath],
    output: StrPath,
    task: Task,
    rows: int = 10_000,
    workers: int | None = 1,
    progress: Callable[[int, int], object] | None = None,
    ray: str | None = None,
) -> Counts:
    """Runs a task on all rows of files, and writes a file for every shard.

    The directory gets `00000.txt`, `00001.txt` and so on, with one output row for each row of the
    files, in the same order. Files are written atomically. The same call resumes an interrupted
    run.

    Args:
        paths: list of paths of text or Parquet files, see `shards.cut`.
        output: the directory.
        task: `tasks.Parsing` or `tasks.Scoring`.
        rows: positive integer, lines in a shard.
        workers: positive integer, number of processes; each loads the model. 1 without a cluster:
            the current process. `None`: one per core, here or in the cluster.
        progress: function of the number of finished rows and of all rows, called after each shard,
            or `None`.
        ray: string, the address of a Ray cluster that runs the task, as for `ray.init`, or `None`.
            All its machines must see the files and the directory under the same paths.

    Returns:
        `Counts` of this call.

    Raises:
        FileNotFoundError: if a file is missing.
        FileExistsError: if the directory has something else in it.
        BlockingIOError: if another process is using it.
        OSError: if a file cannot be written.
        ValueError: if a file is damaged, an argument is invalid, or the directory is of other files
            or arguments.
        ChildProcessError: if a process was killed.
        ConnectionError: if the cluster cannot be reached, or was lost.
        ImportError: if a library that the task needs, or Ray, is not installed.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_onlstm.scale import corpus, tasks
    >>> directory = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (directory / "corpus.txt").write_text("Prices fell.\\n...\\nIt rained.\\n")
    >>> corpus.process([directory / "corpus.txt"], directory / "trees", tasks.Parsing(), rows=2)
    Counts(rows=3, words=4, errors=1)
    >>> print((directory / "trees" / "00000.txt").read_text().strip())
    (X Prices fell)
    # has no words.
    """
    if task.form not in task.forms:
        raise ValueError(f"the format is one of {', '.join(task.forms)}, not {task.form!r}.")
    rows = check_integer("rows", rows)
    workers = None if workers is None else check_integer("workers", workers)
    shards = cut(paths, rows, task.column)
    output = Path(output)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(output, error) from error
    suffix, total = FORMATS[task.form], sum(shard.rows for shard in shards)
    with locked(output):
        begun = _check_plan(output, _plan(paths, shards, task, rows))
        named = [(shard, output / f"{n:05}.{suffix}") for n, shard in enumerate(shards)]
        jobs = [(shard, path) for shard, path in named if not path.exists()]
        done = total - sum(shard.rows for shard, _ in jobs)
        counts = Counts(0, 0, 0)
        try:
            for found in _run(jobs, task, workers, ray) if jobs else ():
                counts = Counts(*map(sum, zip(counts, found, strict=True)))
                done += found.rows
                if progress is not None:
                    progress(done, total)
        finally:
            remove_left_overs(output)
            if not begun and not any(path.exists() for _, path in named):
                (output / PLAN).unlink()  # so that another run may use the directory
    return counts
