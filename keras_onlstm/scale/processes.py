"""Workers that process a corpus, in the processes of one machine."""

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


class Counts(NamedTuple):
    """Numbers of rows, of words that were read, and of rows that could not be read."""

    rows: int
    words: int
    errors: int


class Worker:
    """A task with its model loaded."""

    def __init__(self, task: Task) -> None:
        self._task, self._records = task, task.begin()

    def __call__(self, shard: Shard, path: StrPath) -> Counts:
        """Writes the results of a shard atomically."""
        rows = words = errors = 0

        def results():
            nonlocal rows, words, errors
            texts = read(shard, self._task.column)
            for number, record in enumerate(self._records(texts), shard.row):
                rows += 1
                words += record.words
                errors += bool(record.fields["error"])
                yield {"row": number, **record.fields}

        write(path, results(), self._task)
        return Counts(rows, words, errors)


_worker: Worker | Exception  # of this process


def run(jobs: Sequence[tuple[Shard, Path]], task: Task, workers: int | None) -> Iterator[Counts]:
    """Runs a task on pairs of a shard and its output file, and yields `Counts` after each.

    `workers=None` starts one process per core, 1 uses the current process.
    """
    if workers is None:
        affinity = hasattr(os, "sched_getaffinity")  # cores that this process may use
        workers = len(os.sched_getaffinity(0)) if affinity else os.cpu_count() or 1
    workers = min(workers, len(jobs))
    if workers == 1:
        worker = Worker(task)
        yield from (worker(*job) for job in jobs)
        return
    context = multiprocessing.get_context("spawn")
    with _one_thread():
        pool = concurrent.futures.ProcessPoolExecutor(workers, context, _start_worker, (task,))
        try:
            futures = [pool.submit(_run_job, *job) for job in jobs]
            for future in concurrent.futures.as_completed(futures):
                yield future.result()
        except BrokenProcessPool as error:
            raise ChildProcessError(
                "A worker process ended unexpectedly: it was killed or ran out of memory. Resume "
                "with the same command; fewer --workers need less memory."
            ) from error
        except BaseException:
            for process in multiprocessing.active_children():
                process.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _start_worker(task):
    """Sets up a worker process, which ignores Ctrl-C, discards logs, and ends with its parent."""
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    parent = multiprocessing.parent_process()
    threading.Thread(target=_exit_after, args=(parent,), daemon=True).start()
    try:
        _worker = Worker(task)
    except Exception as error:  # `_run_job` raises it: a pool would hide it here
        _worker = error


def _exit_after(process):
    process.join()
    os._exit(1)


def _run_job(shard, path):
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
