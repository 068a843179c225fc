"""The processes of one training run, connected by JAX's distributed runtime.

Every process runs the same command. Only process 0 writes and prints. Keras is not imported, and
JAX only where there are several processes.
"""

import atexit
import contextlib
import json
import multiprocessing
import os
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from typing import Any

import numpy as np

from keras_onlstm.utils.console import status_of
from keras_onlstm.utils.libraries import versions
from keras_onlstm.utils.validation import module_getattr, renamed_arguments, renamed_attribute


@dataclass(frozen=True)
class Processes:
    """The processes of a training, as one of them sees them."""

    count: int = 1
    index: int = 0  # of this process

    @property
    def is_first(self) -> bool:
        """True on the process that writes and prints."""
        return self.index == 0

    def gather(self, value: Any = None) -> list:
        """Waits until all processes have called this, and lists their JSON values in order."""
        if self.count == 1:
            return [value]
        from jax.experimental.multihost_utils import process_allgather

        data = np.frombuffer(json.dumps(value).encode(), "uint8")
        sizes = process_allgather(np.int32(len(data)))
        rows = process_allgather(np.pad(data, (0, sizes.max() - len(data))))
        return [json.loads(bytes(row[:size])) for row, size in zip(rows, sizes, strict=True)]

    def wait(self) -> None:
        """Waits until all processes have called this."""
        self.gather()

    def on_first(self, function: Callable[[], Any]) -> Any:
        """Calls a function on process 0 only, and returns its JSON value on all processes."""
        return self.gather(function() if self.is_first else None)[0]

    def check_equal(self, values: Mapping[str, Any], description: str) -> None:
        """Raises a `ValueError` on all processes if they have different JSON values by name.

        `description` describes a value, with `{}` for its name.
        """
        first, *others = self.gather(dict(values))
        for index, other in enumerate(others, 1):
            for name in (n for n in {**first, **other} if first.get(n) != other.get(n)):
                raise _disconnect(
                    f"{description.format(name)} is {first.get(name)} on process 0 and "
                    f"{other.get(name)} on process {index}. Start all processes with the same."
                )

    agree = renamed_attribute("agree", "check_equal")
    of_first = renamed_attribute("of_first", "on_first")


SINGLE_PROCESS = Processes()


@renamed_arguments(patience="timeout")
@contextlib.contextmanager
def connect(
    processes: int,
    process_id: int | None,
    coordinator: str | None,
    devices: int,
    arguments: Mapping[str, Any],
    timeout: float = 300.0,
    heartbeat: int = 100,
) -> Iterator[Processes]:
    """A context in which the processes of a training are connected. Only process 0 prints there.

    Enter it before anything computes. After an error inside it, the process cannot compute.
    If `process_id` or the `coordinator`, `"ADDRESS:PORT"` of process 0, is `None`, JAX takes it
    from the job of Slurm, Open MPI or Kubernetes. `arguments` are JSON values that must be the same
    on all processes. All must connect within `timeout` seconds; JAX ends them if one does not
    respond for `heartbeat` seconds.
    """
    if processes == 1:
        if process_id is not None or coordinator is not None:
            raise ValueError(
                "--process-id and --coordinator need --num-processes N, with N of 2 or above."
            )
        yield SINGLE_PROCESS
        return
    import jax

    try:
        connected = _connect(processes, process_id, coordinator, devices, timeout, heartbeat)
        connected.check_equal(versions(), "the version of {}")
        connected.check_equal(arguments, "{}")
        yield connected
        jax.distributed.shutdown()  # waits for all processes
    except BaseException as error:
        is_lost = "Gloo" in str(error)  # the library by which JAX's CPU devices communicate
        if jax.distributed.is_initialized():
            # At exit JAX would wait for the other processes, which wait for this one: a deadlock.
            atexit.register(os._exit, 2 if is_lost else status_of(error))
            atexit.register(sys.stdout.flush)  # runs first
        if is_lost:
            raise ConnectionError(
                "another process has ended: see its output. Start all processes again, with "
                "--resume if the run had begun."
            ) from error
        raise


def _connect(processes, process_id, coordinator, devices, timeout, heartbeat):
    import jax

    if coordinator is not None:
        try:
            port = int(coordinator.rpartition(":")[2])
            if process_id == 0:  # JAX crashes without a message if the port is taken
                socket.create_server(("", port)).close()
        except (OSError, OverflowError, ValueError) as error:
            raise ValueError(
                f"--coordinator {coordinator}: give ADDRESS:PORT, as in 10.0.0.1:7000, with a port "
                f"that is free on process 0 ({error})."
            ) from error
    jax.config.update("jax_num_cpu_devices", devices)
    # JAX would catch SIGTERM, by which schedulers end a process.
    jax.config.update("jax_enable_preemption_service", False)
    pool = ThreadPool(1)  # in a thread, so that Ctrl-C ends the wait
    connection = pool.apply_async(
        jax.distributed.initialize,
        (coordinator, None if process_id is None else processes, process_id),
        {
            # JAX's default under Slurm and Open MPI is one device for each process.
            "local_device_ids": list(range(devices)) if devices > 1 else None,
            "initialization_timeout": int(timeout) + 60,  # then JAX aborts the process
            "heartbeat_timeout_seconds": heartbeat,
        },
    )
    try:
        connection.get(timeout)
    except multiprocessing.TimeoutError:
        raise TimeoutError(
            f"--num-processes {processes}: not all processes connected within {timeout:g} seconds. "
            "Start one process for each, all with the --coordinator of process 0 and each with its "
            "own --process-id."
        ) from None
    except ValueError as error:
        if None not in (process_id, coordinator):
            raise
        raise ValueError(
            f"--num-processes {processes}: JAX finds no job of Slurm, Open MPI or Kubernetes "
            "here. Give --process-id and --coordinator ADDRESS:PORT."
        ) from error
    pool.terminate()
    counts = list(Counter(device.process_index for device in jax.devices()).values())
    if len(counts) != processes or len(set(counts)) > 1:
        raise _disconnect(
            f"--num-processes {processes}, --devices {devices}: {len(counts)} processes connected, "
            f"with {', '.join(map(str, counts))} devices. Start all processes with the same "
            "--num-processes and --devices, one process for each."
        )
    if jax.process_index() > 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # also for C++ libraries
    return Processes(processes, jax.process_index())


def _disconnect(message):
    """Disconnects and returns an error. All processes call it with the same message."""
    import jax

    jax.distributed.shutdown()
    return ValueError(message)


__getattr__ = module_getattr(__name__, {"ALONE": "SINGLE_PROCESS", "joined": "connect"})
