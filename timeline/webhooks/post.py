"""Post: one signed message, and what came of it in plain words. It asks no database."""

from __future__ import annotations

import asyncio
import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Final

import httpcore
from django.utils.translation import gettext as _
from standardwebhooks import Webhook

from timeline import __version__
from timeline.webhooks.conf import get_settings
from timeline.webhooks.connect import NotCalled, check_url
from timeline.webhooks.models import MAX_ANSWER, MAX_ERROR
from timeline.webhooks.retry import ASKING, wait_asked_for

MOST_READ: Final = 64 * 1024
_AGENT: Final = f"timeline-webhooks/{__version__}".encode()
_REDIRECTS: Final = range(300, 400)


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent: ``id`` as ``webhook-id``, and JSON; ``signers`` of the secret, and of the one before for a day."""

    id: str
    url: str
    body: str
    signers: tuple[Webhook, ...]


@dataclass(frozen=True, slots=True)
class PostOutcome:
    """
    What came of it: ``status`` None: there was no answer; ``text``: 2 KiB of it; ``error``: empty, it arrived.

    ``at`` is by this machine's clock; ``wait``: how long a receiver that is well asks to be left alone.
    """

    status: int | None
    text: str
    error: str
    at: datetime
    duration_ms: int
    wait: timedelta = timedelta()

    @property
    def is_delivered(self) -> bool:
        return not self.error


async def post(message: Message, pool: httpcore.AsyncConnectionPool) -> PostOutcome:
    """Send a message, within ``TIMEOUT``. Whatever goes wrong is in the answer."""
    at, begun = datetime.now(UTC), monotonic()
    status, content, error, wait = None, b"", "", timedelta()
    seconds = get_settings().TIMEOUT.total_seconds()
    try:
        async with asyncio.timeout(seconds):
            status, content, error, wait = await _send(message, pool, at)
    except Exception as raised:  # noqa: BLE001 (whatever it is, the delivery is tried again)
        error = _in_words(raised, seconds)
    text = content[:MAX_ANSWER].decode(errors="replace").replace("\x00", "\ufffd")
    return PostOutcome(status, text, error[:MAX_ERROR], at, int((monotonic() - begun) * 1000), wait)


async def _send(
    message: Message, pool: httpcore.AsyncConnectionPool, at: datetime
) -> tuple[int, bytes, str, timedelta]:
    target, body = check_url(message.url), message.body.encode()
    signatures = " ".join(signer.sign(msg_id=message.id, timestamp=at, data=message.body) for signer in message.signers)
    request = httpcore.Request(
        "POST",
        httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path),
        headers=[
            (b"host", target.netloc.encode()),
            (b"user-agent", _AGENT),
            (b"accept", b"*/*"),
            (b"accept-encoding", b"identity"),
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"webhook-id", message.id.encode()),
            (b"webhook-timestamp", str(int(at.timestamp())).encode()),
            (b"webhook-signature", signatures.encode()),
        ],
        content=body,
    )
    response = await pool.handle_async_request(request)
    try:
        content, is_whole = await _read(response)
    finally:
        await response.aclose()
    return response.status, content, _problem(response.status, is_whole), _wait(response)


def _wait(response: httpcore.Response) -> timedelta:
    if response.status not in ASKING:
        return timedelta()
    said = next((value for name, value in response.headers if name.lower() == b"retry-after"), b"")
    return wait_asked_for(said.decode("latin-1").strip(), at=datetime.now(UTC))


async def _read(response: httpcore.Response) -> tuple[bytes, bool]:
    """Read an answer, 64 KiB at most; say whether that was all."""
    content = b""
    async for part in response.aiter_stream():
        content += part
        if len(content) > MOST_READ:
            return content, False
    return content, True


def _problem(status: int, is_whole: bool) -> str:
    """What is wrong with an answer; empty: nothing."""
    if status in _REDIRECTS:
        return _("It answered %(status)d, a redirect. Those are not followed: give the URL that it leads to.") % {
            "status": status
        }
    if not 200 <= status < 300:
        return _("It answered %(status)d.") % {"status": status}
    return "" if is_whole else _("It answered with more than 64 KiB.")


def _in_words(raised: Exception, seconds: float) -> str:
    """Say what went wrong. Of what a library says, nothing is taken over but the kind of it: it may name secrets."""
    if isinstance(raised, NotCalled):
        return str(raised)
    if isinstance(raised, TimeoutError | httpcore.TimeoutException):
        return _("It did not answer within %(seconds)g s.") % {"seconds": seconds}
    if isinstance(raised, socket.gaierror | UnicodeError):
        return _("Its name was not found.")
    if _is_about_certificates(raised):
        return _("Its certificate is not trusted.")
    if isinstance(raised, httpcore.ConnectError | OSError):
        return _("No connection was made.")
    if isinstance(raised, httpcore.RemoteProtocolError):
        return _("It did not answer with HTTP.")
    if isinstance(raised, httpcore.NetworkError):
        return _("The connection broke off.")
    return _("It was not sent: %(kind)s.") % {"kind": type(raised).__name__}


def _is_about_certificates(raised: BaseException | None) -> bool:
    while raised is not None:
        if isinstance(raised, ssl.SSLCertVerificationError):
            return True
        raised = raised.__cause__ or raised.__context__
    return False
