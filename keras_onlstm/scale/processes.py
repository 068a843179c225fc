"""The workers that process a corpus, and the processes of one machine that run them."""

import concurrent.futures
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from keras_onlstm.scale.shards import Shard, read, write
from keras_onlstm.scale.tasks import Task
from keras_onlstm.utils import StrPath

__all__ = ["Counts", "Worker", "run"]


class Counts(NamedTuple):
    """Numbers of rows, words and errors.

    Attributes:
        rows: integer.
        words: integer, words that were read.
        errors: integer, rows that could not be read.
    """

    rows: int
    words: int
    errors: int


class Worker:
    """A task with its model loaded.

    Args:
        task: `tasks.Task`.

    Raises:
        Exception: any error of the task's `begin`, such as `FileNotFoundError`.
    """

    def __init__(self, task: Task) -> None:
        self._task, self._records = task, task.begin()

    def __call__(self, shard: Shard, path: StrPath) -> Counts:
        """Writes the results of a shard atomically.

        Args:
            shard: `shards.Shard`.
            path: path of the output file.

        Returns:
            `Counts`.

        Raises:
            OSError: if the file cannot be written.
            ValueError: if the shard's file is damaged.
        """
        counts = [0, 0, 0]

        def rows():
            texts = read(shard, self._task.column)
            for number, found in enumerate(self._records(texts), shard.row):
                for place, more in enumerate((1, found.words, bool(found.fields["error"]))):
                    counts[place] += more
                yield {"row": number, **found.fields}

        write(path, rows(), self._task)
        return Counts(*counts)


_worker: Worker | Exception  # of this process


def _cores():
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run(jobs: Sequence[tuple[Shard, Path]], task: Task, workers: int | None) -> Iterator[Counts]:
    """Runs a task on shards in several processes.

    Args:
        jobs: list of pairs of a shard and the path of its output file.
        task: `tasks.Task`.
        workers: positive integer, processes; 1: the current process. `None`: one per core.

    Yields:
        `Counts` of a shard, when it is written.

    Raises:
        ChildProcessError: if a process was killed.
        Exception: any error of a `Worker`.
    """
    workers = min(workers or _cores(), len(jobs))
    if workers == 1:
        worker = Worker(task)
        yield from (worker(*job) for job in jobs)
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


def _begin(task):
    """Sets up a worker process.

    It ignores Ctrl-C, discards logs on stderr, ends when its parent does, and passes it exceptions.
    """
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    threading.Thread(
        target=_end_with, args=(multiprocessing.parent_process(),), daemon=True
    ).start()
    try:
        _worker = Worker(task)
    except Exception as error:  # a pool would hide it
        _worker = error


def _end_with(process):
    process.join()
    os._exit(1)


def _finish(shard, path):
    if isinstance(_worker, Exception):
        raise _worker
    return _worker(shard, path)


@contextmanager
def _one_thread():
    """Processes started in this context have one BLAS thread each."""
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
