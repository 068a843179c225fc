"""Processing of large files in several processes, shard by shard. It can be resumed."""

import json
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

PLAN = "corpus.json"


def _plan(paths, shards, task, rows):
    """The content of `PLAN`: the files, with sizes and times, and the task."""
    resolved = [Path(path).resolve() for path in paths]
    stats = [path.stat() for path in resolved]
    files = [
        {"path": str(path), "bytes": stat.st_size, "changed": stat.st_mtime_ns}
        for path, stat in zip(resolved, stats, strict=True)
    ]
    load = {name: str(value) for name, value in task.load.items()}
    numbers = {"rows": rows, "version": __version__, "shards": len(shards)}
    fields = task._replace(load=load)._asdict()
    return {"files": files, **numbers, "task": type(task).__name__, **fields}


def _check_plan(output, plan):
    """Returns whether the run is resumed. Raises `ValueError` if its plan has changed."""
    path = output / PLAN
    if path.exists():
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            stored = None
        if not isinstance(stored, dict):
            raise ValueError(f"{path}: this file is damaged. Choose another --output.")
        for name, value in plan.items():
            if stored.get(name) != value:
                raise ValueError(
                    f"{output}: this run was started with other {name}. Resume it with the same "
                    "command and files, or choose another --output."
                )
        return True
    if any(file.name != LOCK and not is_left_over(file) for file in output.iterdir()):
        raise FileExistsError(f"{output}: contains other files. Choose another --output.")
    write_json(path, plan)
    return False


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
    """Runs a task on all rows of text or Parquet files, and returns the `Counts` of this call.

    The directory `output` gets a file for every shard, `00000.txt`, `00001.txt` and so on, with one
    output row for each row of the files, in the same order. Files are written atomically. The same
    call resumes an interrupted run.

    A shard has `rows` lines. Each of `workers` processes loads the model; 1 is the current process,
    `None` one per core. `ray` is the address of a Ray cluster, as for `ray.init`, whose machines
    see all files under the same paths. `progress` is called with the numbers of finished and of all
    rows after each shard.

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
        raise ValueError(f"form must be one of {', '.join(task.forms)}, got {task.form!r}.")
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
        resumed = _check_plan(output, _plan(paths, shards, task, rows))
        all_jobs = [(shard, output / f"{n:05}.{suffix}") for n, shard in enumerate(shards)]
        jobs = [(shard, path) for shard, path in all_jobs if not path.exists()]
        done = total - sum(shard.rows for shard, _ in jobs)
        counts = Counts(0, 0, 0)
        try:
            for shard_counts in _run(jobs, task, workers, ray) if jobs else ():
                counts = Counts(*map(sum, zip(counts, shard_counts, strict=True)))
                done += shard_counts.rows
                if progress is not None:
                    progress(done, total)
        finally:
            remove_left_overs(output)
            if not resumed and not any(path.exists() for _, path in all_jobs):
                (output / PLAN).unlink()  # another run may use the directory
    return counts
