"""Large files read by several processes, shard by shard; what is finished is never done again."""

import concurrent.futures
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from keras_onlstm.scale.shards import FORMATS, cut, read, write
from keras_onlstm.scale.tasks import Task
from keras_onlstm.utils.arguments import integer
from keras_onlstm.utils.files import cannot_write, is_left_over, write_json
from keras_onlstm.utils.locks import LOCK, locked
from keras_onlstm.utils.types import StrPath
from keras_onlstm.version import __version__

__all__ = ["Counts", "cores", "process"]

PLAN = "corpus.json"


class Counts(NamedTuple):
    """What came of rows.

    Attributes:
        rows: integer.
        words: integer, those that were read.
        errors: integer, rows that could not be read.
    """

    rows: int
    words: int
    errors: int


_held: dict[str, Any] = {}  # of a process: the task, and what does it


def _end_with(process):
    process.join()
    os._exit(1)


def _begin(task):
    """What a process does once. Ctrl-C is for the one that began it, whose death it shares.

    Nobody reads what libraries log in it; an exception goes to the one that began it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    threading.Thread(
        target=_end_with, args=(multiprocessing.parent_process(),), daemon=True
    ).start()
    try:
        _load(task)
    except Exception as error:  # which a pool would hide
        _held["error"] = error


def _load(task):
    _held["task"], _held["records"] = task, task.begin()


def _finish(shard, path):
    if "error" in _held:
        raise _held["error"]
    task, counts = _held["task"], [0, 0, 0]

    def rows():
        for number, found in enumerate(_held["records"](read(shard, task.column)), shard.row):
            for place, more in enumerate((1, found.words, bool(found.fields["error"]))):
                counts[place] += more
            yield {"row": number, **found.fields}

    write(path, rows(), task)
    return Counts(*counts)


def _plan(paths, shards, task, rows):
    """What a directory is for: files as they are now, and what is done with them."""
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
    """Whether it was begun before; refuses another plan than that of then."""
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


@contextmanager
def _one_thread():
    """Processes that begin here have one thread each for their products."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _run(jobs, task, workers):
    if workers == 1:
        _load(task)
        yield from (_finish(*job) for job in jobs)
        return
    context = multiprocessing.get_context("spawn")
    with _one_thread():
        pool = concurrent.futures.ProcessPoolExecutor(workers, context, _begin, (task,))
        try:
            waiting = [pool.submit(_finish, *job) for job in jobs]
            for future in concurrent.futures.as_completed(waiting):
                yield future.result()
        except BrokenProcessPool as error:
            raise ChildProcessError(
                "a process that read has ended, killed or for want of memory. What is finished "
                "is kept: the same command goes on; fewer --workers need less memory."
            ) from error
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def process(
    paths: Sequence[StrPath],
    output: StrPath,
    task: Task,
    rows: int = 10_000,
    workers: int = 1,
    progress: Callable[[Counts, float], object] | None = None,
) -> Counts:
    """Does something with all rows of files, and writes a file for every shard of them.

    The directory gets `00000.txt`, `00001.txt` and so on, of as many rows as the files have, in
    their order; each is there as soon as it is whole. The same call again goes on where the last
    one ended, however it did.

    Args:
        paths: list of paths, as of `shards.cut`.
        output: the directory.
        task: `tasks.Parsing` or `tasks.Scoring`.
        rows: positive integer, lines in a shard.
        workers: positive integer, processes; each loads the model. With 1 it is this
            one.
        progress: function of the `Counts` of a finished shard, and of the share of all rows that
            are done, or `None`.

    Returns:
        `Counts` of what this call did.

    Raises:
        FileNotFoundError: if a file is missing.
        FileExistsError: if the directory has something else in it.
        BlockingIOError: if another process is at work in it.
        OSError: if a file cannot be written.
        ValueError: if a file is damaged, an argument is invalid, or the directory is of other files
            or arguments.
        ChildProcessError: if a process was killed.

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
    rows, workers = integer("rows", rows), integer("workers", workers)
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
            for found in _run(jobs, task, workers) if jobs else ():
                counts = Counts(*map(sum, zip(counts, found, strict=True)))
                done += found.rows
                if progress is not None:
                    progress(found, done / total)
        finally:
            if not begun and not any(path.exists() for _, path in named):
                (output / PLAN).unlink()  # it may be begun in another way
    return counts
