"""The hosts of one training: which of them this is, what they have to agree on, what ends them.

A training on several hosts is the same command on each. They meet (`meeting`), compare what they
were started with, and compute on the devices of all (`devices`). Host 0 alone writes and prints. No
Keras.
"""

import atexit
import contextlib
import os
import re
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from keras_onlstm.training.meeting import Meeting
from keras_onlstm.utils.console import status_of
from keras_onlstm.utils.files import cannot_write
from keras_onlstm.utils.provenance import versions

__all__ = ["ALONE", "Hosts", "Place", "joined", "place"]

_BEGIN = "Start all hosts again."
_RESUME = "Start all hosts again with --resume: they go on from the last checkpoint."
_MOMENT = 2.0  # seconds in which a host that is gone is noticed
_SHARED_WITHIN = 30.0  # seconds in which a network file system shows what another host wrote
_LAUNCHERS = {  # names of what starts processes, and where it says how many there are, and which
    "Slurm": ("SLURM_NTASKS", "SLURM_PROCID"),
    "mpirun": ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),  # Open MPI
    "mpiexec": ("PMI_SIZE", "PMI_RANK"),  # MPICH and its kin
}


class Place(NamedTuple):
    """A host among those of a training.

    Attributes:
        hosts: how many there are.
        host_id: which this is, from 0 on.
        coordinator: `"ADDRESS:PORT"` where host 0 listens, or `None` where there is one alone.
    """

    hosts: int = 1
    host_id: int = 0
    coordinator: str | None = None


def place(
    hosts: int,
    host_id: int | None = None,
    coordinator: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Place:
    """Which host this is: as the command line says, or what started the processes.

    Args:
        hosts: how many there are.
        host_id: which this is, or `None`: as Slurm, `mpirun` or `mpiexec` say.
        coordinator: where host 0 listens, or `None`: on the first machine of a job of Slurm.
        environment: mapping of environment variables.

    Returns:
        `Place`.

    Raises:
        ValueError: if it is not known, or not one of so many.

    Example:

    >>> from keras_onlstm.training.hosts import place
    >>> place(2, environment={"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"})
    Traceback (most recent call last):
    ...
    ValueError: --hosts 2: where does host 0 listen? Give --coordinator ADDRESS:PORT.
    >>> slurm = {"SLURM_NTASKS": "2", "SLURM_PROCID": "1", "SLURM_STEP_NODELIST": "node[07-08]"}
    >>> place(2, environment=slurm | {"SLURM_JOB_ID": "4096"})
    Place(hosts=2, host_id=1, coordinator='node07:61440')
    """
    if hosts == 1:
        if host_id is not None or coordinator is not None:
            raise ValueError("--host-id and --coordinator go with --hosts N, of 2 or above.")
        return Place()
    if host_id is None:
        host_id = _launched(hosts, environment)
    if host_id is None:
        raise ValueError(
            f"--hosts {hosts}: which of them is this? Give --host-id and --coordinator "
            "ADDRESS:PORT, or start them with srun or mpirun; --hosts 1 trains on this one alone."
        )
    if not 0 <= host_id < hosts:
        raise ValueError(f"--host-id {host_id}: hosts are 0 to {hosts - 1}, for --hosts {hosts}.")
    coordinator = coordinator or _of_slurm(environment)
    if coordinator is None:
        raise ValueError(
            f"--hosts {hosts}: where does host 0 listen? Give --coordinator ADDRESS:PORT."
        )
    return Place(hosts, host_id, coordinator)


def _launched(hosts, environment):
    """The number of this process, from 0 on; `None` where nothing says so."""
    for launcher, (size, rank) in _LAUNCHERS.items():
        count, index = environment.get(size, ""), environment.get(rank, "")
        if count.isdigit() and index.isdigit():
            if int(count) != hosts:
                raise ValueError(
                    f"--hosts {hosts}: {launcher} has started {count} processes. Start one a host."
                )
            return int(index)
    return None


def _of_slurm(environment):
    """A port of the first machine of a job, which two jobs there hardly share; or `None`."""
    nodes, job = environment.get("SLURM_STEP_NODELIST", ""), environment.get("SLURM_JOB_ID", "")
    first = re.match(r"([^,\[]+)(?:\[(\w+))?", nodes)  # node07,... or node[07-08,11]
    if first is None or not job.isdigit():
        return None
    return f"{first[1]}{first[2] or ''}:{61440 + int(job) % 4096}"


class Hosts:
    """The hosts of a training, as one of them sees them.

    Args:
        meeting: `Meeting`, or `None`: there is this one alone.

    Attributes:
        count: how many there are.
        index: which this is, from 0 on.
        remedy: sentence for who lost one of them.

    Example:

    >>> from keras_onlstm.training.hosts import ALONE
    >>> ALONE.count, ALONE.is_first, ALONE.of_first(lambda: 7)
    (1, True, 7)
    """

    def __init__(self, meeting: Meeting | None = None) -> None:
        self._meeting = meeting
        self.count = 1 if meeting is None else meeting.count
        self.index = 0 if meeting is None else meeting.index
        self._end: Callable[[], object] | None = None
        self.remedy = _BEGIN

    @property
    def is_first(self) -> bool:
        """Whether this is the host that writes and prints."""
        return self.index == 0

    @property
    def which(self) -> tuple[int, int]:
        """Which this is, and how many there are."""
        return self.index, self.count

    def of_first(self, function: Callable[[], Any]) -> Any:
        """What a function returns on host 0, on all hosts. It is called there alone.

        Args:
            function: without arguments, of a JSON value.

        Returns:
            That value.
        """
        if self._meeting is None:
            return function()
        return self._meeting.gather(function() if self.is_first else None)[0]

    def wait(self) -> None:
        """Waits until all hosts are here."""
        if self._meeting is not None:
            self._meeting.gather()

    def agree(self, values: Mapping[str, Any], what: str) -> None:
        """Refuses hosts that were started differently.

        Args:
            values: dictionary of JSON values by name.
            what: what they are, with an `{}` for the name.

        Raises:
            ValueError: on every host, if they differ.
        """
        if self._meeting is None:
            return
        first, *others = self._meeting.gather(dict(values))
        for index, other in enumerate(others, 1):
            for name in (n for n in {**first, **other} if first.get(n) != other.get(n)):
                self._refuse(
                    f"{what.format(name)}: it is {other.get(name)} on host {index}, and "
                    f"{first.get(name)} on host 0. Start all hosts with the same."
                )

    def check_shared(self, directory: str | Path, seconds: float = _SHARED_WITHIN) -> None:
        """Refuses a directory that is not one and the same for all hosts.

        Args:
            directory: which is made if it is missing.
            seconds: how long to wait for what host 0 writes there.

        Raises:
            OSError: if it cannot be written.
            ValueError: on every host, if one does not see it.
        """
        if self._meeting is None:
            return
        directory = Path(directory)
        made = not directory.exists()
        name = self.of_first(lambda: _mark(directory))
        seen = self._meeting.gather(_appears(directory, name, seconds))
        if self.is_first:
            (directory / name).unlink()
            if made and not all(seen):
                directory.rmdir()
        if not all(seen):
            self._refuse(
                f"{directory}: host {seen.index(False)} does not see what host 0 writes there. "
                "Give an --output in a file system that all hosts share."
            )

    def begin(self) -> None:
        """Says that the run has begun, and can be resumed from now on."""
        self.remedy = _RESUME

    def tunnel(self) -> tuple[int, int]:
        """A way for a library of its own connections, which does not break with a host.

        Returns:
            The port of host 0 at which that library listens there, and the one at which it answers
            on this host, both of 127.0.0.1.
        """
        port = self.of_first(_free_port)
        if self._meeting is None:
            return port, port
        if self.is_first:
            self._meeting.open_tunnels(port)
        return port, port if self.is_first else self._meeting.tunnel()

    def at_end(self, function: Callable[[], object]) -> None:
        """Keeps what has to be done once all hosts are about to leave.

        Args:
            function: without arguments.
        """
        self._end = function

    def leave(self) -> None:
        """Waits for all hosts, and parts from them."""
        if self._meeting is None:
            return
        self._meeting.gather()
        if self._end is not None:
            self._end()
        self._meeting.leave()

    def fail(self, error: BaseException) -> None:
        """Tells the other hosts that this one ends, and why.

        Args:
            error: that ends it.
        """
        if self._meeting is None:
            return
        if self._end is not None and isinstance(error, Exception):
            # Another host may be gone. The meeting knows soon, and ends this process then.
            time.sleep(self._meeting.silence + 5 if _is_of_jax(error) else _MOMENT)
        self._meeting.fail(_words(error))
        if self._end is not None:  # JAX would wait for the others while it is tidied up
            atexit.register(_exit, status_of(error))

    def _refuse(self, message):
        """Ends the meeting on all hosts, which all know why."""
        if self._meeting is not None:
            self._meeting.leave()
        raise ValueError(message)


ALONE = Hosts()


@contextlib.contextmanager
def joined(
    place: Place,
    output: str | Path,
    arguments: Mapping[str, Any],
    patience: float = 300.0,
) -> Iterator[Hosts]:
    """A context in which the hosts of a training are together. Host 0 alone prints there.

    Args:
        place: which of them this is.
        output: directory of the run, which they have to share.
        arguments: dictionary of JSON values that has to be the same on all.
        patience: seconds within which they have to come.

    Yields:
        `Hosts`.

    Raises:
        OSError: if they do not come together.
        ValueError: if they differ.

    Example:

    >>> from keras_onlstm.training.hosts import Place, joined
    >>> with joined(Place(), "runs/new", {"seed": 0}) as hosts:
    ...     hosts.count
    1
    """
    if place.coordinator is None:
        yield ALONE
        return
    hosts: list[Hosts] = []
    meeting = Meeting(
        place.coordinator,
        place.hosts,
        place.host_id,
        lambda text: _report_loss(text, hosts[0].remedy if hosts else _BEGIN),
        patience,
    )
    hosts.append(Hosts(meeting))
    with contextlib.ExitStack() as stack:
        if not hosts[0].is_first:
            nowhere = stack.enter_context(open(os.devnull, "w"))
            stack.enter_context(contextlib.redirect_stdout(nowhere))
        try:
            hosts[0].agree(versions(), "the version of {}")
            hosts[0].agree(arguments, "{}")
            hosts[0].check_shared(output)
            yield hosts[0]
            hosts[0].leave()
        except BaseException as error:
            hosts[0].fail(error)
            raise


def _mark(directory):
    """Writes an empty file for the others to look for: its name."""
    name = f".hosts.{secrets.token_hex(8)}.part"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / name).touch()
    except OSError as error:
        raise cannot_write(directory, error) from error
    return name


def _appears(directory, name, seconds):
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            if name in os.listdir(directory):  # a network file system looks again for this
                return True
        if time.monotonic() > end:
            return False
        time.sleep(0.1)


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def _is_of_jax(error):
    """Whether JAX could not compute; what Gloo says it may raise as a `ValueError` too."""
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(error, jax.errors.JaxRuntimeError):
        return True
    return "Gloo" in str(error)


def _words(error):
    if isinstance(error, KeyboardInterrupt):
        return "it was stopped."
    if isinstance(error, SystemExit):
        return f"exit status {error.code}."
    return " ".join(str(error).split()) or type(error).__name__


def _exit(status):
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _report_loss(text, remedy):
    """Says in one line that a host is lost, and ends the process, whatever it is waiting for."""
    before = "\n" if sys.stdout.isatty() else ""
    name = os.path.basename(sys.argv[0])
    os.write(2, f"{before}{name}: error: {text} {remedy}\n".encode())
    os._exit(1)
