"""Views whose open pages follow what happens: they ask whether they are still true, or are told so on ASGI."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.core.handlers.asgi import ASGIRequest
from django.db import connections, router
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse

from timeline.conf import get_settings
from timeline.live.versions import (
    EVERYTHING,
    NOBODY,
    OneEntity,
    Subject,
    read_version,
    rights_of,
    version_of,
    was_let_in,
)
from timeline.live.watcher import OVER, PageListener, watcher_of
from timeline.models import ScheduledTask, ref_of

if TYPE_CHECKING:
    from django.db.models import Model

    from timeline.live.versions import Subject, Told


AT_A_TIME: Final = 10  # In one process.
AGAIN: Final = (2, 10)  # Seconds after which to come again, at random between these: not all of them at once.

_door: Final = threading.BoundedSemaphore(AT_A_TIME)

KIND: Final = "text/event-stream"  # What a browser's EventSource asks for.
COMES_BACK: Final = (
    2000,
    10_000,
)  # Milliseconds after which a browser does whose connection broke, at random between these.
STILL: Final = 10.0  # Seconds after which is said that nothing was to be said: refresh.js waits twice as long.
View = Callable[..., Any]
SEEN: Final = "X-Timeline-Seen"  # What an open page sends: the version that it shows; empty: it knows none yet.
VERSION: Final = "X-Timeline-Version"  # What it is told: the version of the answer.


def let_in(show: Callable[[], HttpResponseBase], *, using: str) -> HttpResponseBase:
    """Show a listener the page, or answer 503 without asking the database: too many listen, or come just now."""
    if watcher_of(using).is_full(get_settings().LIVE_STREAMS) or not _door.acquire(blocking=False):
        seconds = random.randint(*AGAIN)  # noqa: S311 (nobody gains by guessing it)
        return HttpResponse(status=503, headers={"Retry-After": str(seconds), "Cache-Control": "no-store, private"})
    try:
        return show()
    finally:
        close_connections()
        _door.release()


def close_connections() -> None:
    """Close those of this thread: Django does so when the answer is over, which may be in hours."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()


def can_stream(request: HttpRequest) -> bool:
    """Whether the site runs ASGI, and may keep connections of open pages."""
    has_session = getattr(request, "session", None) is not None or not hasattr(request, "user")
    return isinstance(request, ASGIRequest) and has_session and get_settings().LIVE_STREAMS > 0


def asks_to_stream(request: HttpRequest) -> bool:
    """Whether it is a browser's EventSource that asks."""
    return request.method == "GET" and request.headers.get("Accept", "") == KIND


def stream(request: HttpRequest, subject: Subject, *, using: str) -> StreamingHttpResponse:
    """Tell an open page of its subject until it is closed, or who looks is logged out or loses a right."""
    rights = rights_of(getattr(request, "user", None))
    key = getattr(getattr(request, "session", None), "session_key", None)
    listening = _listening(subject, subject.mark(using), lambda: _has(rights, key), using)
    response = StreamingHttpResponse(listening, content_type=KIND)
    response["Cache-Control"] = "no-store, private"
    response["X-Accel-Buffering"] = "no"  # Of nginx: it would keep what is said until there is enough of it.
    return response


async def _listening(subject: Subject, told: Told, may_stay: Callable[[], bool], using: str) -> AsyncIterator[bytes]:
    await sync_to_async(close_connections)()  # Such as a middleware has made since.
    said: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def tell(what: str) -> None:
        loop.call_soon_threadsafe(_say, said, what)

    listener = PageListener(subject=subject, told=told, tell=tell, may_stay=may_stay)
    watcher = watcher_of(using)
    if not watcher.add(listener, most=get_settings().LIVE_STREAMS):
        yield _event("full")
        return
    try:
        yield f"retry: {random.randint(*COMES_BACK)}\n".encode() + _event("here")  # noqa: S311 (nobody gains by guessing it)
        what = ""
        while what != OVER:
            try:
                what = await asyncio.wait_for(said.get(), STILL)
            except TimeoutError:
                what = "still"
            yield _event(what)
    finally:
        watcher.remove(listener)


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


def live_page(entity: Callable[..., Model] | None = None) -> Callable[[View], View]:
    """
    Let open pages of a view of yours follow what happens to an entity, or to any. Templates: how-to/hosting.md.

    The view itself is called with each change, and every half a minute: what it refuses, an open page does not get either.

    Args:
        entity: Gives the entity that a page is about, as the view would: ``entity(request, …)``, with the arguments of the
            view. What it raises, such as ``Http404``, is the answer. Left out: the page lists many, and follows all.
    """

    def decorate(view: View) -> View:
        def subject(request: HttpRequest, *args: Any, **named: Any) -> Subject:
            return EVERYTHING if entity is None else OneEntity(*ref_of(entity(request, *args, **named)))

        return watched(view, subject, lambda: router.db_for_write(ScheduledTask))

    return decorate


def watched(view: View, subject_of: Callable[..., Subject], alias: Callable[[], str]) -> View:
    """
    Let open pages of a view ask whether they are still as they were.

    With the header ``X-Timeline-Seen`` of what would be shown now, the answer is 204; else the page as this user may see it,
    with its version. On ASGI, an ``EventSource`` at the same address is told when to ask. The view always looks at rights
    first: no rows are read for others, since the time that takes would tell what is there.

    ``subject_of(request, …)`` says what it shows; ``alias`` names the database.
    """

    def streamed(request: HttpRequest, *args: Any, **named: Any) -> HttpResponseBase:
        refused: HttpResponseBase = view(request, *args, **named)
        if refused.status_code != 200:
            return refused
        return stream(request, subject_of(request, *args, **named), using=alias())

    @wraps(view)
    def asked(request: HttpRequest, *args: Any, **named: Any) -> HttpResponseBase:
        if asks_to_stream(request) and can_stream(request):
            return let_in(lambda: streamed(request, *args, **named), using=alias())
        show = partial(view, request, *args, **named)
        if SEEN not in request.headers or request.method != "GET":
            response: HttpResponseBase = show()
            return response
        return _asked_again(request, show, lambda using: subject_of(request, *args, **named).mark(using), alias())

    return asked


def _asked_again(
    request: HttpRequest, show: Callable[[], HttpResponseBase], mark: Callable[[str], Told], using: str
) -> HttpResponseBase:
    """Answer an open page: with itself as it is now, or that nothing has changed."""
    seen = read_version(request.headers[SEEN])
    if not was_let_in(request, seen):
        refused = show()
        if refused.status_code != 200:
            return refused
    # Its mark before the page is read: what comes in between is told next time.
    version = version_of(request, mark(using), using=using, seen=seen)
    if seen and seen.content == version.content:
        return HttpResponse(status=204, headers={VERSION: str(version), "Cache-Control": "no-store, private"})
    response = show()
    if response.status_code == 200:
        response[VERSION] = str(version)
        response["Cache-Control"] = "no-store, private"
    return response
