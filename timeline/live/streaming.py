"""Server-sent events: an open page is told that it has changed, not what. It then asks for itself, as it would without."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from importlib import import_module
from typing import TYPE_CHECKING, Final

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.core.handlers.asgi import ASGIRequest
from django.db import connections
from django.http import HttpRequest, StreamingHttpResponse

from timeline.conf import get_settings
from timeline.live.versions import NOBODY, rights_of
from timeline.live.watching import OVER, Listener, watcher_of

if TYPE_CHECKING:
    from timeline.live.subjects import Subject, Told

KIND: Final = "text/event-stream"  # What a browser's EventSource asks for.
STILL: Final = 10.0  # Seconds after which is said that nothing was to be said: refresh.js waits twice as long.


def can_stream(request: HttpRequest) -> bool:
    """Whether the site runs ASGI, and may keep connections of open pages."""
    has_session = getattr(request, "session", None) is not None or not hasattr(request, "user")
    return isinstance(request, ASGIRequest) and has_session and get_settings().LIVE_STREAMS > 0


def asks_to_stream(request: HttpRequest) -> bool:
    """Whether it is a browser's EventSource that asks."""
    return request.method == "GET" and request.headers.get("Accept", "") == KIND


def stream(request: HttpRequest, subject: Subject, *, using: str) -> StreamingHttpResponse:
    """
    Tell an open page what happens to its subject, until it is closed, or who looks is logged out or loses a right.

    Called once the page's own view has let them in.

    Args:
        request: Of the page.
        subject: What it shows.
        using: Database alias.
    """
    rights = rights_of(getattr(request, "user", None))
    key = getattr(getattr(request, "session", None), "session_key", None)
    listening = _listening(subject, subject.mark(using), lambda: _has(rights, key), using)
    response = StreamingHttpResponse(listening, content_type=KIND)
    response["Cache-Control"] = "no-store, private"
    response["X-Accel-Buffering"] = "no"  # Of nginx: it would keep what is said until there is enough of it.
    return response


async def _listening(subject: Subject, told: Told, may_stay: Callable[[], bool], using: str) -> AsyncIterator[bytes]:
    await sync_to_async(_close_connections)()
    said: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def tell(what: str) -> None:
        loop.call_soon_threadsafe(_say, said, what)

    listener = Listener(subject=subject, told=told, tell=tell, may_stay=may_stay)
    watcher = watcher_of(using)
    if not watcher.add(listener, most=get_settings().LIVE_STREAMS):
        yield _event("full")
        return
    try:
        yield _event("here")
        what = ""
        while what != OVER:
            try:
                what = await asyncio.wait_for(said.get(), STILL)
            except TimeoutError:
                what = "still"
            yield _event(what)
    finally:
        watcher.remove(listener)


def _close_connections() -> None:
    """Close those of the thread that showed the page: Django does so when the answer is over, which may be in hours."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()


def _say(said: asyncio.Queue[str], what: str) -> None:
    if said.empty() or what == OVER:  # Who is told that it has changed asks for all that has.
        said.put_nowait(what)


def _event(what: str) -> bytes:
    return f"event: {what}\ndata: {what}\n\n".encode()


def _has(rights: str, session_key: str | None) -> bool:
    """Whether whose session it is has the same rights still."""
    if rights == NOBODY:
        return True
    again = HttpRequest()
    again.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    return rights_of(get_user(again)) == rights
