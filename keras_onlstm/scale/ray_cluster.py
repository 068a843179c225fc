"""Processing of a corpus on a Ray cluster. Ray Data distributes the shards."""

import logging
import os
import pickle
import socket
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from keras_onlstm.scale.processes import Counts, Worker
from keras_onlstm.scale.shards import Shard
from keras_onlstm.scale.tasks import Task
from keras_onlstm.utils.libraries import not_installed


class _Actor:
    """A `Worker` on a machine. It returns exceptions, because Ray would wrap raised ones."""

    def __init__(self, task):
        self._worker: Worker | Exception
        try:
            self._worker = Worker(task)
        except Exception as error:
            self._worker = error

    def __call__(self, job):
        shard, path = pickle.loads(job["job"])
        try:
            if isinstance(self._worker, Exception):
                raise self._worker
            if not Path(shard.path).exists() or not Path(path).parent.is_dir():
                raise FileNotFoundError(_unshared(shard.path, path))
            result: Any = self._worker(shard, path)
        except Exception as error:
            result = error
        return {"result": pickle.dumps((str(path), result))}


def _unshared(*paths):
    return (
        f"{' or '.join(map(str, paths))}: does not exist on another machine of the cluster. Use "
        "files and an --output on a file system that all machines share."
    )


def _import():
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
    os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "2")  # to notice a lost cluster soon
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise not_installed("--ray", "ray[data]", error=error) from error
    # Hides logs of the cluster, which its own files keep.
    ray._private.worker._worker_logs_enabled = False
    return ray


def run(
    jobs: Sequence[tuple[Shard, Path]], task: Task, workers: int | None, address: str
) -> Iterator[Counts]:
    """`processes.run` on the Ray cluster at `address`. Other machines replace a lost one."""
    ray = _import()
    _connect(ray, address)
    try:
        yield from _run(ray, jobs, task, workers)
    except ray.exceptions.RayError as error:
        line = str(error).strip().splitlines()[0]
        raise ConnectionError(
            f"--ray {address}: the connection to the cluster was lost ({line}). Resume with the "
            "same command."
        ) from error
    finally:
        ray.shutdown()


def _connect(ray, address):
    try:
        host, separator, port = address.rpartition(":")
        if separator and port.isdecimal() and "/" not in host:
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        ray.init(address, log_to_driver=False, logging_level=logging.CRITICAL)
    except Exception as error:  # Ray raises many classes
        line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ConnectionError(
            f"--ray {address}: no Ray cluster answers there ({line}). Start one with ray start "
            "--head. On its machines, --ray auto finds it."
        ) from error


def _run(ray, jobs, task, workers):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray warns about its own names
        context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    workers = min(workers or int(ray.cluster_resources().get("CPU", 1)), len(jobs))
    packed = [
        {"job": pickle.dumps((shard._replace(path=os.path.abspath(shard.path)), path.absolute()))}
        for shard, path in jobs
    ]
    results = ray.data.from_items(packed, override_num_blocks=len(packed)).map(
        _Actor,
        fn_constructor_args=(task,),
        num_cpus=1,
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=workers),
    )
    for row in results.iter_rows():
        path, counts = pickle.loads(row["result"])
        if isinstance(counts, Exception):
            raise counts
        if not Path(path).exists():
            raise FileNotFoundError(_unshared(path))
        yield counts
