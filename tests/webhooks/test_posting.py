"""One message: what hostile receivers do, names that lead elsewhere, and certificates."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta

import pytest
from standardwebhooks import Webhook

from tests.processes import DEADLINE
from timeline.webhooks import connect
from timeline.webhooks.connect import make_pool
from timeline.webhooks.post import Message, post
from timeline.webhooks.secrets import new_secret

SECRET = new_secret()
has_answer = threading.Event()  # Whoever asked has got what there is to get.


def posted(url, body="{}"):
    async def once():
        pool = make_pool()
        try:
            return await post(Message("msg_1", url, body, (Webhook(SECRET),)), pool)
        finally:
            await pool.aclose()

    return asyncio.run(once())


def endless_headers(out):
    out.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(100_000):
        out.write(b"X-%d: %s\r\n" % (number, b"a" * 1000))


def ten_megabytes(out):
    out.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n")
    for _part in range(100):
        out.write(b"a" * 100_000)


def nonsense(out):
    out.write(b"SSH-2.0-OpenSSH_9.2\r\n")


def nothing(_out):
    has_answer.wait(DEADLINE)


def drop_by_drop(out):
    out.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    with suppress(OSError):  # Nobody listens any more.
        while not has_answer.wait(0.1):
            out.write(b"a")
            out.flush()


ANSWERS = [
    (lambda: 200, None, ""),
    (lambda: (202, b"taken"), "taken", ""),
    (lambda: 302, None, "It answered 302, a redirect"),
    (lambda: 307, None, "It answered 307, a redirect"),
    (lambda: (500, b"a\x00\xff<script>"), "a\ufffd\ufffd<script>", "It answered 500."),
    (lambda: (200, b"a" * 70_000), "a" * 2048, "more than 64 KiB"),
    (lambda: ten_megabytes, "a" * 2048, "more than 64 KiB"),
    (lambda: endless_headers, None, "did not answer with HTTP"),
    (lambda: nonsense, None, "did not answer with HTTP"),
    (lambda: nothing, None, "did not answer within 2 s"),
    (lambda: drop_by_drop, None, "did not answer within 2 s"),
]


class TestPost:
    @pytest.mark.parametrize(("said", "text", "error"), ANSWERS)
    def test_says_what_came_of_it(self, said, text, error, receiver, settings):
        """A receiver that takes its time takes more of it than it is given; to the others much is given."""
        has_answer.clear()
        timeout = 2 if "within 2 s" in error else DEADLINE
        settings.TIMELINE_WEBHOOKS |= {"TIMEOUT": timedelta(seconds=timeout)}
        receiver.answer = lambda _request: said()

        try:
            answer = posted(receiver.url)
        finally:
            has_answer.set()

        assert error in answer.error
        assert bool(error) is not answer.is_delivered
        assert answer.text == (text or "")
        assert len(receiver.requests) == 1

    def test_asks_no_proxy_of_the_environment(self, receiver, monkeypatch):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")

        assert posted(receiver.url).is_delivered

    def test_refuses_a_url_that_has_become_hostile(self, receiver):
        assert "not a public address" in posted("https://10.0.0.1/").error

    def test_connects_to_nobody_where_nobody_is(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]

        assert posted(f"http://127.0.0.1:{port}/").error == "No connection was made."


async def three_posted(more):
    """Post three messages; the receiver says more with its first answer. Gives the answers, and how many connected."""
    left, came = [more], []

    async def answer(reader, writer):
        came.append(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError, OSError):
            while await reader.readuntil(b"\r\n\r\n{}"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + (left.pop() if left else b""))
                await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    server, pool = await asyncio.start_server(answer, "127.0.0.1", 0), make_pool()
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    try:
        answers = [await post(Message(f"msg_{no}", url, "{}", (Webhook(SECRET),)), pool) for no in range(3)]
    finally:
        await pool.aclose()
        server.close()
        await asyncio.gather(*came)
    return [(each.status, each.text) for each in answers], len(came)


class TestAKeptConnection:
    @pytest.fixture(autouse=True)
    def _here(self, settings):
        settings.TIMELINE_WEBHOOKS = settings.TIMELINE_WEBHOOKS | {"ALLOW_LOOPBACK": True}

    def test_is_used_again(self):
        assert asyncio.run(three_posted(b"")) == ([(200, "ok")] * 3, 1)

    @pytest.mark.parametrize(
        "more",
        [
            b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfake",
            b"HTTP/1.1 5",
            b"nonsense",
            b"\r\n",
        ],
    )
    def test_is_closed_if_more_is_said_than_was_asked(self, more):
        """It would be the answer to the next delivery."""
        assert asyncio.run(three_posted(more)) == ([(200, "ok")] * 3, 2)


class _Names:
    """Stands in for the resolver: gives each name the addresses that a test says, one list a look-up."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host, port, **_extra):
        self.asked += 1
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in self.answers.pop(0)]


class TestAName:
    @pytest.fixture
    def names(self, monkeypatch):
        def say(*answers):
            names = _Names(*answers)
            monkeypatch.setattr(
                asyncio.base_events.BaseEventLoop, "getaddrinfo", lambda _loop, *args, **kw: names(*args, **kw)
            )
            return names

        return say

    @pytest.mark.parametrize(
        "addresses",
        [["10.0.0.1"], ["93.184.216.34", "10.0.0.1"], ["169.254.169.254"], ["::ffff:10.0.0.1"], ["fe80::1%eth0"], []],
    )
    def test_is_refused_if_one_of_its_addresses_is_not_public(self, addresses, names):
        answer = posted("https://receiver.example.com/") if not names(addresses).asked else None

        assert answer is not None
        assert not answer.is_delivered
        assert answer.status is None

    def test_is_looked_up_once_and_that_address_is_called(self, names, receiver, settings):
        """Who answers otherwise the second time is never asked a second time."""
        port = int(receiver.url.rpartition(":")[2])
        settings.TIMELINE_WEBHOOKS |= {"PORTS": [port]}
        rebinding = names(["127.0.0.1"], ["10.0.0.1"])

        answer = posted(f"http://receiver.example.com:{port}/")

        assert answer.is_delivered
        assert rebinding.asked == 1
        [request] = receiver.requests
        assert request.headers["host"] == f"receiver.example.com:{port}"

    def test_with_an_address_that_says_nothing_is_called_at_the_next(self, names, receiver, settings):
        """The first one takes no connection: as where IPv6 leads nowhere."""
        port = int(receiver.url.rpartition(":")[2])
        settings.TIMELINE_WEBHOOKS |= {"TIMEOUT": timedelta(seconds=6)}
        names(["::1", "127.0.0.1"])

        with full("::1", port):
            answer = posted(f"http://localhost:{port}/")

        assert answer.is_delivered, answer


@contextmanager
def full(address, port):
    """Listen there, with no room for anybody who connects. Where the machine has no such address, nobody listens."""
    with ExitStack() as stack:
        with suppress(OSError):
            silent = stack.enter_context(socket.socket(socket.AF_INET6))
            silent.bind((address, port))
            silent.listen(0)
            for _each in range(3):
                caller = stack.enter_context(socket.socket(socket.AF_INET6))
                caller.setblocking(False)
                caller.connect_ex((address, port))
        yield


class TestTLS:
    def test_needs_a_certificate_that_is_trusted(self, tls_receiver, settings):
        """One that signed itself is refused, until the settings say that it is trusted."""
        untrusted = posted(tls_receiver.url)
        settings.TIMELINE_WEBHOOKS |= {"CA_FILE": tls_receiver.ca_file}
        trusted = posted(tls_receiver.url)
        elsewhere = posted(tls_receiver.url.replace("localhost", "127.0.0.1"))

        assert untrusted.error == "Its certificate is not trusted."
        assert trusted.is_delivered
        assert elsewhere.error == "Its certificate is not trusted."
        connect._trusting.cache_clear()
