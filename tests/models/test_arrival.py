"""Times of an answer are those at which its bytes reached this machine, however busy we are."""

import asyncio
import socket
import ssl
import threading
import time

import pytest
from chat_endpoint import ASKED, said
from test_lean_ways import certificate  # noqa: F401  a fixture

from harness_cli.models import stamped
from harness_cli.models.base import Deadline
from harness_cli.models.lean import LeanPolicy
from harness_cli.models.stamped import StampedSocket
from harness_cli.records.config import PolicyConfig

THINK_S, BUSY_S = 0.2, 1.2


def answering(listener, context=None):
    """A server of its own thread: our event loop standing still is none of its business.

    The event that is given back is set once it has the question.
    """
    heard = threading.Event()

    def serve():
        peer, _ = listener.accept()
        with peer if context is None else context.wrap_socket(peer, server_side=True) as wire:
            asked = b""
            while not asked.endswith(b"}"):
                asked += wire.recv(65536)
            heard.set()
            time.sleep(THINK_S)
            body = b"".join(said().pieces)
            wire.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
            )
            wire.recv(1)

    threading.Thread(target=serve, daemon=True).start()
    return heard


def pair(listener):
    """Two ends of one connection; the first is one of ours."""
    ours = StampedSocket()
    ours.connect(listener.getsockname())
    ours.begin()
    return ours, listener.accept()[0]


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


@pytest.fixture(scope="module", autouse=True)
def notes_are_kept():
    """The kernel begins to note a moment after the first socket of a machine has asked for it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ours, theirs = pair(listening)
    with ours, theirs:
        for _ in range(100):
            before = time.perf_counter()
            theirs.sendall(b"x")
            time.sleep(0.05)
            ours.recv(1)
            if ours.came(after=before) < time.perf_counter() - 0.04:
                break
        yield


def busy_while_it_answers(url, heard):
    """The reply to a call during which the event loop stands still."""

    async def go():
        policy = LeanPolicy("p", PolicyConfig(kind="openai", model="m", base_url=url))
        asking = asyncio.ensure_future(policy.complete(ASKED, Deadline.within(30)))
        while not heard.is_set():
            await asyncio.sleep(0.005)
        time.sleep(BUSY_S)  # as a judge or a long prompt does
        reply = await asking
        await policy.close()
        return reply

    return asyncio.run(go())


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_what_this_program_is_busy_with_is_no_time_of_the_server(
    scheme,
    listener,
    certificate,  # noqa: F811
    monkeypatch,
):
    context = None
    if scheme == "https":
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
    heard = answering(listener, context)
    reply = busy_while_it_answers(f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/v1", heard)
    assert reply.content == "Hello."
    for seconds in (reply.ttft_s, reply.first_delta_s, reply.latency_s):
        assert THINK_S <= seconds < BUSY_S - 0.2


@pytest.mark.parametrize("into", [False, True])
def test_bytes_are_told_the_moment_they_came_and_not_the_moment_they_were_read(listener, into):
    ours, theirs = pair(listener)
    with ours, theirs:
        before = time.perf_counter()
        theirs.sendall(b"hello")
        sent = time.perf_counter()
        time.sleep(0.05)
        held = bytearray(5)
        assert (ours.recv_into(held) == 5) if into else (ours.recv(16) == b"hello")
        read = time.perf_counter()
        came = ours.came(after=before)
    assert before <= came < read - 0.04
    assert came <= sent + 0.04


@pytest.mark.parametrize("jump_s", [3600.0, -3600.0])
def test_a_wall_clock_that_was_set_meanwhile_is_not_believed(listener, monkeypatch, jump_s):
    ours, theirs = pair(listener)
    with ours, theirs:
        before = time.perf_counter()
        theirs.sendall(b"hello")
        ours.recv(16)
        wall = time.time
        monkeypatch.setattr(stamped.time, "time", lambda: wall() + jump_s)
        read = time.perf_counter()
        assert ours.came(after=before) >= read


def test_where_the_kernel_keeps_no_notes_the_time_of_reading_stands(listener, monkeypatch):
    monkeypatch.setattr(stamped, "_KNOWN", False)
    ours, theirs = pair(listener)
    with ours, theirs:
        before = time.perf_counter()
        theirs.sendall(b"hello")
        time.sleep(0.02)
        ours.recv(16)
        read = time.perf_counter()
        assert ours.came(after=before) >= read
