"""A view whose open pages follow what happens: they ask whether they show it still, or are told so where the site runs ASGI."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from django.db import router
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from timeline.live.streaming import asks_to_stream, can_stream, stream
from timeline.live.subjects import EVERYTHING, OneEntity, Subject
from timeline.live.versions import read_version, version_of
from timeline.models import ScheduledTask, ref_of

if TYPE_CHECKING:
    from django.db.models import Model

View = Callable[..., Any]

SEEN: Final = "X-Timeline-Seen"  # What an open page sends: the version that it shows; empty: it knows none yet.
VERSION: Final = "X-Timeline-Version"  # What it is told: the version of the answer.


def live_page(entity: Callable[..., Model] | None = None) -> Callable[[View], View]:
    """
    Let open pages of a view of yours follow what happens to an entity, or to any. What a template needs is in docs/hosting.md.

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

    A request without the header ``X-Timeline-Seen`` is answered as ever. One that names what would be shown now is answered
    with 204; any other with the page, as this user may see it now, and its version. Where the site runs ASGI, a browser's
    ``EventSource`` at the same address is told when to ask, once the view has let it in. Nobody is shown anything but by the
    view, after its own look at rights.

    Args:
        view: Shows the page.
        subject_of: Says what it shows: ``subject_of(request, …)``, with the arguments of the view.
        alias: Names the database whose tasks are shown.
    """

    def streamed(request: HttpRequest, *args: Any, **named: Any) -> HttpResponseBase:
        refused: HttpResponseBase = view(request, *args, **named)
        if refused.status_code != 200:
            return refused
        return stream(request, subject_of(request, *args, **named), using=alias())

    @wraps(view)
    def asked(request: HttpRequest, *args: Any, **named: Any) -> HttpResponseBase:
        if asks_to_stream(request) and can_stream(request):
            return streamed(request, *args, **named)
        told = request.headers.get(SEEN)
        if told is None or request.method != "GET":
            response: HttpResponseBase = view(request, *args, **named)
            return response
        using, seen = alias(), read_version(told)
        # Before the page is read: what comes in between is told next time.
        mark = subject_of(request, *args, **named).mark(using)
        version = version_of(request, mark, using=using, seen=seen)
        if seen and seen.content == version.content:
            return HttpResponse(status=204, headers={VERSION: str(version), "Cache-Control": "no-store, private"})
        response = view(request, *args, **named)
        if response.status_code == 200:
            response[VERSION] = str(version)
            response["Cache-Control"] = "no-store, private"
        return response

    return asked
