"""What a meeting of hosts is made of: connections, and lines of JSON on them. No Keras."""

import contextlib
import ipaddress
import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

__all__ = ["Line", "cut", "listening", "parts", "pour", "prompt", "reached"]

_LONGEST = 1 << 20  # bytes of a message
_BLOCK = 1 << 16
_AGAIN = 0.1  # seconds after which what could not be reached is tried again


class Line:
    """A connection that carries JSON objects, one a line.

    Args:
        connection: socket.

    Example:

    >>> import socket
    >>> from keras_onlstm.training.connections import Line
    >>> first, second = map(Line, socket.socketpair())
    >>> first.send(gather=0, value=[7])
    >>> second.receive(seconds=5)
    {'gather': 0, 'value': [7]}
    >>> first.close(), second.close()
    (None, None)
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        # Without a buffer: what follows the first line may be no longer ours.
        self._file = connection.makefile("rb", buffering=0)
        self._lock = threading.Lock()

    def send(self, **message: Any) -> None:
        """Sends an object.

        Args:
            **message: what it holds, JSON values.
        """
        with self._lock:
            self.connection.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, seconds: float) -> dict[str, Any]:
        """Waits for an object.

        Args:
            seconds: how long.

        Returns:
            Dictionary.

        Raises:
            OSError: if the connection ended, or none came.
            ValueError: if something else came.
        """
        self.connection.settimeout(seconds)
        text = self._file.readline(_LONGEST)
        if not text.endswith(b"\n"):
            raise ConnectionError("it ended")
        message = json.loads(text)
        if not isinstance(message, dict):
            raise ValueError("not an object")
        return message

    def raw(self) -> socket.socket:
        """The connection, which is no longer one of lines."""
        self._file.close()
        self.connection.settimeout(None)
        return self.connection

    def close(self) -> None:
        """Ends the connection, for both."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self._file.close()
        self.connection.close()


def parts(address: str) -> tuple[str, int]:
    """The host and the port of an address.

    Args:
        address: `"ADDRESS:PORT"`.

    Returns:
        Pair of a text and an integer.

    Raises:
        ValueError: if it is none.

    Example:

    >>> from keras_onlstm.training.connections import parts
    >>> parts("10.0.0.1:7000"), parts("[::1]:7000")
    (('10.0.0.1', 7000), ('::1', 7000))
    """
    name, _, port = address.rpartition(":")
    if not name or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise ValueError(f"--coordinator {address}: give ADDRESS:PORT, as in 10.0.0.1:7000.")
    return name.strip("[]"), int(port)


def listening(address: str) -> socket.socket:
    """A socket that listens at an address; at all of this machine's if that has a name.

    Args:
        address: `"ADDRESS:PORT"`.

    Returns:
        Socket.

    Raises:
        OSError: if it cannot listen there.
        ValueError: if it is no address.
    """
    name, port = parts(address)
    if name != "localhost":
        try:
            ipaddress.ip_address(name)
        except ValueError:
            name = ""
    family = socket.AF_INET6 if ":" in name else socket.AF_INET
    try:
        return socket.create_server((name, port), family=family, backlog=128)
    except OSError as error:
        raise OSError(
            f"--coordinator {address}: host 0 cannot listen there ({error.strerror}). Give an "
            "address of the machine on which host 0 runs, and a port that is free."
        ) from error


def prompt(connection: socket.socket) -> socket.socket:
    """Lets a connection of TCP send what is short without waiting for more.

    Args:
        connection: socket.

    Returns:
        The same.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def reached(where: Callable[[], tuple[str, int]], seconds: float) -> socket.socket:
    """A connection to what may begin to listen only later.

    Args:
        where: function of no argument that gives name and port, asked before every attempt.
        seconds: how long to try.

    Returns:
        Socket.

    Raises:
        OSError: if nothing answers; it says why the last attempt failed.
    """
    end, reason = time.monotonic() + seconds, "no answer"
    while (left := end - time.monotonic()) > 0:
        try:
            connection = socket.create_connection(where(), min(left, 10.0))
            if connection.getsockname() != connection.getpeername():
                connection.settimeout(None)
                return prompt(connection)
            connection.close()  # on one machine a free port may meet itself
        except OSError as error:
            reason = error.strerror or str(error) or reason
        time.sleep(_AGAIN)
    raise OSError(reason)


def pour(source: socket.socket, target: socket.socket) -> None:
    """Hands on what comes, as long as it comes.

    Args:
        source: socket.
        target: socket, which is not closed.
    """
    with contextlib.suppress(OSError):
        while data := source.recv(_BLOCK):
            target.sendall(data)


def cut(connection: socket.socket) -> None:
    """Ends a connection, also for who waits for it in another thread.

    Args:
        connection: socket.
    """
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
