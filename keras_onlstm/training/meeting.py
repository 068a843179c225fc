"""Hosts that meet, wait for one another, and hear of it when one is lost. No Keras.

Host 0 listens at an address, the others keep a connection to it open for as long as the training
lasts. Messages are JSON, one a line. A host that ends, or is silent for too long, is lost, and then
all are told which one and why: no library below has to notice.

A connection may also be a tunnel to a port that only host 0 itself can reach. The end of host 0
closes no tunnel on the other side, so that what uses it goes on waiting while the meeting reports.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from keras_onlstm.training.connections import Line, cut, listening, parts, pour, prompt, reached

__all__ = ["Meeting"]

_PATIENCE = 20.0  # seconds that a stranger has to say who it is, and a tunnel to find its end
_MOMENT = 0.5  # seconds


def _listed(numbers):
    names = [str(number) for number in numbers]
    return f"host {names[0]}" if len(names) == 1 else f"hosts {', '.join(names)}"


class Meeting:
    """A host's place among the hosts of one training.

    Args:
        address: `"ADDRESS:PORT"`, where host 0 listens.
        count: integer, number of hosts.
        index: integer from 0 on, which of them this is.
        lost: function of a text, called in another thread when a host is lost. What it says begins
            with the name of that host.
        patience: seconds within which all have to come.
        silence: seconds after which a host is lost that says nothing.

    Raises:
        OSError: if the address is not one of host 0, cannot be reached, or a host does not come.
        ValueError: if it is no address, or a host was started for another meeting.

    Example:

    >>> import socket, threading
    >>> from keras_onlstm.training.meeting import Meeting
    >>> with socket.create_server(("127.0.0.1", 0)) as free:
    ...     address = f"127.0.0.1:{free.getsockname()[1]}"
    >>> def other():
    ...     with_one = Meeting(address, 2, 1, print)
    ...     with_one.gather("one")
    ...     with_one.leave()
    >>> thread = threading.Thread(target=other)
    >>> thread.start()
    >>> meeting = Meeting(address, 2, 0, print)
    >>> meeting.gather("zero")
    ['zero', 'one']
    >>> meeting.leave()
    >>> thread.join()
    """

    def __init__(
        self,
        address: str,
        count: int,
        index: int,
        lost: Callable[[str], object],
        patience: float = 300.0,
        silence: float = 45.0,
    ) -> None:
        self.address, self.count, self.index = address, count, index
        self._lost, self.silence = lost, silence
        self._lines: dict[int, Line] = {}  # of host 0 to all others, of another to host 0
        self._names = {index: socket.gethostname()}
        self._values: dict[int, dict[int, Any]] = {}  # of host 0: what came, by number and host
        self._gathered: dict[int, list] = {}
        self._number = 0
        self._changed = threading.Condition()
        self._over = self._told = False
        self._port: int | None = None  # to which tunnels lead
        self._listener: socket.socket | None = None
        self._tunnels: list[socket.socket] = []
        if index == 0:
            self._receive_all(time.monotonic() + patience, patience)
        else:
            self._come(time.monotonic() + patience, patience)
        for host in self._lines:
            self._start(self._watch, host)
        self._start(self._show_life)

    def gather(self, value: Any = None) -> list:
        """Waits until every host has called this, and collects what they brought.

        Args:
            value: JSON value.

        Returns:
            List of the values of all hosts, in their order.

        Raises:
            ConnectionError: if a host was lost.
        """
        number, self._number = self._number, self._number + 1
        self._bring(number, value, last=False)
        return self._wait_for(number)

    def leave(self) -> None:
        """Waits for all, and ends the meeting."""
        self._bring(self._number, None, last=True)
        self._wait_for(self._number)
        self._close()
        for connection in self._tunnels:
            cut(connection)

    def fail(self, reason: str) -> None:
        """Ends the meeting for all.

        Args:
            reason: what the others say of it, a sentence.
        """
        self._over = True
        for line in self._lines.values():
            with contextlib.suppress(OSError):
                line.send(failed=reason)
        self._close()

    def open_tunnels(self, port: int) -> None:
        """Lets the tunnels of the other hosts lead to a port of host 0.

        Args:
            port: integer, at 127.0.0.1.
        """
        self._port = port

    def tunnel(self) -> int:
        """The port at 127.0.0.1 of this host that leads to host 0's."""
        listener = socket.create_server(("127.0.0.1", 0))
        self._start(self._accept_locals, listener)
        return listener.getsockname()[1]

    def _start(self, function, *arguments):
        threading.Thread(target=function, args=arguments, daemon=True).start()

    # Meeting

    def _receive_all(self, end, patience):
        self._listener = listening(self.address)
        self._start(self._accept, self._listener)
        with self._changed:
            complete = self._changed.wait_for(
                lambda: len(self._lines) == self.count - 1, end - time.monotonic()
            )
            missing = [k for k in range(1, self.count) if k not in self._lines]
        if not complete:
            reason = (
                f"{_listed(missing)} of {self.count} did not come within {patience:g} s. Start "
                f"every host, with --coordinator {self.address} and a --host-id of its own."
            )
            for line in self._lines.values():
                with contextlib.suppress(OSError):
                    line.send(refused=reason)
            self._close()
            raise TimeoutError(reason)
        for line in self._lines.values():
            line.send(names=[self._names[host] for host in range(self.count)])

    def _accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self._start(self._greet, prompt(connection))

    def _greet(self, connection):
        line = Line(connection)
        try:
            hello = line.receive(_PATIENCE)
            if hello.get("tunnel"):
                self._lead(line)
                return
            refusal = self._refusal(hello)
            if refusal:
                line.send(refused=refusal)
                line.close()
                return
        except (OSError, ValueError, RecursionError):  # a stranger
            line.close()
            return
        with self._changed:
            host = hello["host"]
            self._names[host] = str(hello.get("name"))[:200]
            self._lines[host] = line
            self._changed.notify_all()

    def _refusal(self, hello):
        host, count = hello.get("host"), hello.get("hosts")
        if count != self.count:
            return f"host {host} was started with --hosts {count}, host 0 with {self.count}."
        if not isinstance(host, int) or not 0 < host < self.count:
            return f"there is no host {host}: they are 0 to {self.count - 1}."
        if host in self._lines:
            return f"host {host} is there already: give each a --host-id of its own."
        return None

    def _come(self, end, patience):
        try:
            line = Line(reached(lambda: parts(self.address), patience))
        except OSError as error:
            raise OSError(
                f"{self.address}: host 0 cannot be reached there within {patience:g} s ({error}). "
                "Start it, or correct --coordinator."
            ) from None
        try:
            line.send(host=self.index, hosts=self.count, name=self._names[self.index])
            answer = line.receive(max(end - time.monotonic(), 1.0) + _PATIENCE)
            refusal = answer.get("refused")
            if refusal is None:
                self._names = dict(enumerate(map(str, answer["names"])))
        except TimeoutError:
            line.close()
            raise TimeoutError(
                f"{self.address}: not all {self.count} hosts came within {patience:g} s, or what "
                "listens there is none of them. Start them all, and host 0 at that address."
            ) from None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            line.close()
            raise OSError(
                f"{self.address}: host 0 has ended, or what listens there is none. See what host 0 "
                "says, or correct --coordinator."
            ) from None
        if refusal is not None:
            line.close()
            raise ValueError(str(refusal))
        self._lines[0] = line

    # Gathering

    def _bring(self, number, value, last):
        if self.index == 0:
            self._take(0, number, value, last)
            return
        with contextlib.suppress(OSError):  # the watch says what that means
            self._lines[0].send(gather=number, value=value, last=last)

    def _take(self, host, number, value, last):
        """At host 0: collects, and sends round what is complete."""
        with self._changed:
            values = self._values.setdefault(number, {})
            values[host] = value
            if len(values) < self.count:
                return
            del self._values[number]
            gathered = [values[place] for place in range(self.count)]
            self._over = last
        for line in self._lines.values():
            with contextlib.suppress(OSError):
                line.send(gathered=number, values=gathered, last=last)
        self._keep(number, gathered)

    def _keep(self, number, gathered):
        with self._changed:
            self._gathered[number] = gathered
            self._changed.notify_all()

    def _wait_for(self, number):
        with self._changed:
            self._changed.wait_for(lambda: number in self._gathered or self._told)
            if number not in self._gathered:
                raise ConnectionError("a host was lost")
            return self._gathered.pop(number)

    # Watching

    def _watch(self, host):
        line = self._lines[host]
        try:
            while True:
                message = line.receive(self.silence)
                if "gather" in message:
                    self._take(host, message["gather"], message["value"], message["last"])
                elif "gathered" in message:
                    self._over = message["last"]
                    self._keep(message["gathered"], message["values"])
                elif "failed" in message:
                    self._tell(f"{self._who(host)} has ended: {message['failed']}")
                elif "lost" in message:
                    self._tell(str(message["lost"]))
        except TimeoutError:
            self._tell(f"{self._who(host)} has said nothing for {self.silence:g} s.")
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            self._tell(f"{self._who(host)} is gone.")

    def _show_life(self):
        while not self._over and not self._told:
            for line in list(self._lines.values()):
                with contextlib.suppress(OSError):  # its watch will say so
                    line.send()
            time.sleep(self.silence / 10)

    def _who(self, host):
        return f"host {host} ({self._names.get(host)})"

    def _tell(self, text):
        with self._changed:
            if self._over or self._told:
                return
            self._told = True
        if self.index == 0:
            for line in self._lines.values():
                with contextlib.suppress(OSError):
                    line.send(lost=text)
            time.sleep(_MOMENT)  # so that it arrives before this host is gone too
        self._lost(text)
        with self._changed:
            self._changed.notify_all()

    def _close(self):
        self._over = True
        if self._listener is not None:
            cut(self._listener)  # which ends the thread that waits there, too
        for line in self._lines.values():
            line.close()

    # Tunnels

    def _accept_locals(self, listener):
        self._tunnels.append(listener)
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self._start(self._dig, prompt(connection))

    def _dig(self, connection):
        try:
            line = Line(reached(lambda: parts(self.address), _PATIENCE))
        except OSError:
            connection.close()
            return
        try:
            line.send(tunnel=True)
            line.receive(_PATIENCE)
        except (OSError, ValueError):
            line.close()
            connection.close()
            return
        self._join(connection, line.raw())

    def _lead(self, line):
        """At host 0: joins a tunnel to its end, once that is there."""
        try:
            target = reached(lambda: ("127.0.0.1", self._port or 0), _PATIENCE)
            line.send()
        except OSError:
            line.close()
            return
        self._join(target, line.raw())

    def _join(self, near, far):
        """Hands on between what uses a tunnel and the other host."""
        self._tunnels += [near, far]
        self._start(pour, far, near)
        pour(near, far)
        cut(near)
        cut(far)
