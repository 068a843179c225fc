"""How hosts of one training meet, wait for one another, and hear of it when one is lost.

Each host is a thread here, without JAX, and a loss is reported to a list.
"""

import contextlib
import json
import queue
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from commands import free_address
from keras_onlstm.training import connections
from keras_onlstm.training import meeting as module
from keras_onlstm.training.meeting import Meeting


def met(address, count, patience=20.0, silence=20.0):
    """The meetings of so many hosts, and a queue for each of what it hears to be lost."""
    losses = [queue.Queue() for _ in range(count)]

    def join(index):
        return Meeting(address, count, index, losses[index].put, patience, silence)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(join, range(count))), losses


@pytest.fixture
def three():
    hosts, losses = met(free_address(), 3)
    yield hosts, losses
    for host in hosts:
        host.fail("the test is over.")


def at_once(functions):
    with ThreadPoolExecutor(len(functions)) as pool:
        return [result.result(20) for result in [pool.submit(f) for f in functions]]


def test_all_get_what_each_brings(three):
    hosts, _ = three
    for turn in range(20):
        brought = [{"host": host, "turn": turn} for host in range(3)]
        gathered = at_once(
            [lambda h=host, b=b: h.gather(b) for host, b in zip(hosts, brought, strict=True)]
        )
        assert gathered == [brought] * 3


def test_nobody_goes_on_before_all_are_there(three):
    hosts, _ = three
    late = 0.3
    begin = time.monotonic()
    waits = [hosts[0].gather, lambda: (time.sleep(late), hosts[1].gather()), hosts[2].gather]
    at_once(waits)
    assert time.monotonic() - begin >= late


def test_leaving_is_no_loss():
    hosts, losses = met(free_address(), 3)
    at_once([host.leave for host in hosts])
    time.sleep(0.3)
    assert [loss.qsize() for loss in losses] == [0, 0, 0]


@pytest.mark.parametrize("gone", [0, 1])
def test_all_hear_which_host_is_gone(three, gone):
    """Its connections end without a word, as when a process is killed."""
    hosts, losses = three
    hosts[gone]._over = True  # it is no more, and tells nobody
    for line in hosts[gone]._lines.values():
        line.connection.shutdown(socket.SHUT_RDWR)
    for index in {0, 1, 2} - {gone}:
        assert losses[index].get(timeout=10).startswith(f"host {gone} (")
    others = [host.gather for host in hosts if host.index != gone]
    for gather in others:
        with pytest.raises(ConnectionError, match="lost"):
            gather()


@pytest.mark.parametrize("index", [0, 2])
def test_all_hear_why_a_host_ends(three, index):
    hosts, losses = three
    hosts[index].fail("runs/new: the disk is full.")
    for other in {0, 1, 2} - {index}:
        said = losses[other].get(timeout=10)
        assert said.startswith(f"host {index} (")
        assert said.endswith(") has ended: runs/new: the disk is full.")


@pytest.mark.parametrize("silent", [0, 1])
def test_a_host_that_says_nothing_is_lost(monkeypatch, silent):
    """As one whose network is cut, or which stands still."""
    show_life = Meeting._show_life

    def show(self):
        if self.index != silent:
            show_life(self)

    monkeypatch.setattr(Meeting, "_show_life", show)
    begin = time.monotonic()
    hosts, losses = met(free_address(), 2, silence=1.0)
    said = losses[1 - silent].get(timeout=10)
    assert said.startswith(f"host {silent} (") and said.endswith("has said nothing for 1 s.")
    assert 1.0 <= time.monotonic() - begin < 5.0
    assert losses[silent].empty() or silent == 1
    for host in hosts:
        host.fail("over.")


def test_hosts_with_nothing_to_say_are_not_lost():
    hosts, losses = met(free_address(), 2, silence=0.5)
    time.sleep(1.5)
    assert [loss.qsize() for loss in losses] == [0, 0]
    at_once([host.leave for host in hosts])


def test_a_host_that_never_comes():
    address = free_address()
    losses = queue.Queue()

    def join(index):
        try:
            return Meeting(address, 3, index, losses.put, patience=1.0)
        except (OSError, ValueError) as error:
            return error

    first, second = at_once([lambda: join(0), lambda: join(1)])
    reason = "host 2 of 3 did not come within 1 s. Start every host, with --coordinator "
    assert str(first).startswith(f"{reason}{address}") and isinstance(first, TimeoutError)
    assert str(second) == str(first) and losses.empty()


def test_a_coordinator_that_is_not_there():
    address = free_address()
    with pytest.raises(OSError, match=rf"{address}: host 0 cannot be reached .* \(Connection ref"):
        Meeting(address, 2, 1, print, patience=0.5)


@pytest.mark.parametrize(
    ("answer", "says"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "what listens there is none"),
     (b"[1]\n", "what listens there is none"), (b"{}\n", "what listens there is none"),
     (b"", "has ended")],
)  # fmt: skip
def test_a_coordinator_that_is_something_else(answer, says):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(OSError, match=says):
            Meeting(address, 2, 1, print, patience=5.0)
        thread.join()


def test_a_coordinator_that_says_nothing(monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(TimeoutError, match=f"{address}: not all 2 hosts came"):
            Meeting(address, 2, 1, print, patience=0.2)


@pytest.mark.parametrize("address", ["10.0.0.1", "host:port", ":7000", "host:0", "host:70000"])
def test_what_is_no_address(address):
    for index in (0, 1):
        with pytest.raises(ValueError, match=r"--coordinator .*: give ADDRESS:PORT"):
            Meeting(address, 2, index, print, patience=0.2)


def test_a_port_that_is_taken_and_an_address_of_another():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for address in (f"127.0.0.1:{port}", f"192.0.2.1:{port}"):
            with pytest.raises(OSError, match=f"--coordinator {address}: host 0 cannot listen"):
                Meeting(address, 2, 0, print, patience=0.2)


@pytest.mark.parametrize(
    ("hello", "says"),
    [({"host": 1, "hosts": 3}, "host 1 was started with --hosts 3, host 0 with 2."),
     ({"host": 2, "hosts": 2}, "there is no host 2: they are 0 to 1."),
     ({"host": "1", "hosts": 2}, "there is no host 1: they are 0 to 1."),
     ({"host": 0, "hosts": 2}, "there is no host 0: they are 0 to 1."),
     ({}, "host None was started with --hosts None")],
)  # fmt: skip
def test_hosts_of_another_training_are_refused_and_the_rest_meets(hello, says):
    address = free_address()

    def stranger():
        name, port = connections.parts(address)
        end = time.monotonic() + 10
        while True:
            with contextlib.suppress(OSError), socket.create_connection((name, port)) as connection:
                connection.sendall(b"garbage\n")
                break
            assert time.monotonic() < end
        with socket.create_connection((name, port)) as connection:
            connection.sendall(json.dumps(hello).encode() + b"\n")
            answer = json.loads(connection.makefile().readline())
        return answer["refused"]

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(Meeting, address, 2, 0, print, 20.0)
        refused = pool.submit(stranger).result(20)
        second = pool.submit(Meeting, address, 2, 1, print, 20.0)
        hosts = [first.result(20), second.result(20)]
    assert refused.startswith(says)
    assert at_once([lambda: hosts[0].gather(0), lambda: hosts[1].gather(1)]) == [[0, 1]] * 2
    at_once([host.leave for host in hosts])


def test_two_hosts_of_one_number(three):
    with pytest.raises(ValueError, match="host 1 is there already"):
        Meeting(three[0][0].address, 3, 1, print, patience=5.0)
    assert at_once([host.gather for host in three[0]]) == [[None] * 3] * 3


def test_a_tunnel_outlives_host_0(three):
    """What uses it hears nothing of the end: that is for the meeting to say."""
    hosts, losses = three
    with socket.create_server(("127.0.0.1", 0)) as service:
        hosts[0].open_tunnels(service.getsockname()[1])
        with socket.create_connection(("127.0.0.1", hosts[2].tunnel()), 10) as user:
            connection, _ = service.accept()
            user.sendall(b"ping" * 50_000)
            received = b""
            while len(received) < 200_000:
                received += connection.recv(1 << 16)
            assert received == b"ping" * 50_000
            connection.sendall(b"pong")
            assert user.recv(10) == b"pong"
            hosts[0].fail("over.")
            connection.close()
            assert losses[2].get(timeout=10)
            user.settimeout(0.5)
            with pytest.raises(TimeoutError):
                user.recv(1)
    for host in hosts:
        for held in host._tunnels:
            connections.cut(held)
