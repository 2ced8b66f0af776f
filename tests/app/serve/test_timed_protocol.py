"""Connections of clients that are too slow."""

import socket
import threading
import time

import pytest
import uvicorn

from psilearn.app.serve import Limits
from psilearn.app.serve.server_process import bind_socket, make_protocol

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
LONG = 20_000_000  # bytes; more than the buffers of a socket


async def answer(scope, receive, send):
    """Answer with a short text, or with a long one at /long, or with 20 kB at /part."""
    size = {"/long": LONG, "/part": 20_000}.get(scope["path"], 2)
    await receive()
    headers = [(b"content-length", str(size).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"x" * size})


@pytest.fixture(scope="module")
def server():
    limits = Limits(header_seconds=1, body_seconds=1)
    listener = bind_socket("127.0.0.1", 0)
    config = uvicorn.Config(answer, http=make_protocol(limits), log_config=None, lifespan="off", timeout_keep_alive=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    server.address = listener.getsockname()
    yield server
    server.should_exit = True
    thread.join(30)


@pytest.fixture
def address(server):
    return server.address


def read_answer(client):
    content = b""
    while not content.endswith(b"xx"):
        part = client.recv(1000)
        assert part, "the connection was closed"
        content += part
    assert content.startswith(b"HTTP/1.1 200")


def read_until_closed(client):
    """Return how many bytes arrive before the service closes the connection, and the seconds until then."""
    client.settimeout(20)
    start, n_bytes = time.monotonic(), 0
    try:
        while part := client.recv(1 << 20):
            n_bytes += len(part)
    except ConnectionResetError:
        pass
    return n_bytes, time.monotonic() - start


@pytest.mark.parametrize("requests_before", [0, 1, 3])
def test_unfinished_heads_are_closed_on_new_and_on_used_connections(address, requests_before):
    with socket.create_connection(address) as client:
        for _ in range(requests_before):
            client.sendall(HEAD)
            read_answer(client)
        client.sendall(HEAD[:-3])  # the end of the head never comes
        n_bytes, seconds = read_until_closed(client)
    assert n_bytes == 0 and 0.5 < seconds < 10


def test_a_head_that_comes_in_parts_in_time_is_answered(address):
    with socket.create_connection(address) as client:
        for _ in range(2):
            for part in (HEAD[:5], HEAD[5:20], HEAD[20:]):
                client.sendall(part)
                time.sleep(0.1)
            read_answer(client)


def test_clients_that_do_not_read_are_dropped_and_slow_ones_are_not(address):
    with socket.create_connection(address) as idle, socket.create_connection(address) as slow:
        for client in (idle, slow):
            client.sendall(HEAD.replace(b"/", b"/long", 1))
        received, start = 0, time.monotonic()
        while received < LONG:  # takes longer than the limit in all, but reads all the time
            received += len(slow.recv(1 << 20))
            time.sleep(max(0, start + 1.6 * received / LONG - time.monotonic()))
        n_bytes, _ = read_until_closed(idle)
    assert n_bytes < LONG <= received


def wait_for(condition):
    """Return what a condition returns when it is met."""
    stop = time.monotonic() + 20
    while not (met := condition()):
        assert time.monotonic() < stop
        time.sleep(0.01)
    return met


def test_the_end_of_an_answer_that_is_not_read_does_not_keep_a_connection_open(server):
    def find():
        own = [c for c in list(server.server_state.connections) if c.client == client.getsockname()]
        return own[0] if own else None

    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(server.address)
        transport = wait_for(find).transport
        while not transport.get_write_buffer_size():  # until the buffers of the sockets are full
            client.sendall(HEAD.replace(b"/", b"/part", 1))
            time.sleep(0.01)
        wait_for(lambda: find() is None)
