"""Live pages: whether a page would show something else by now, asked cheaply, so that an open page can ask each second."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db.models import Count, Max, Sum
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.crypto import salted_hmac

from timeline.admin.entities import accounts
from timeline.clocks import story_now
from timeline.models import Hold, LogEntry, RunEntry, ScheduledTask, StepRecord, TimelineRun, exact_ref
from timeline.models.step import origins_of

if TYPE_CHECKING:
    from django.db.models import Model

Mark = Callable[..., tuple[Any, ...]]
View = Callable[..., HttpResponse]

SEEN: Final = "X-Timeline-Seen"  # What an open page sends: the version that it shows; empty: it knows none yet.
VERSION: Final = "X-Timeline-Version"  # What it is told: the version of the answer.
OVERLAP: Final = 100  # Ids are not in the order of commits: so many of the newest are compared, not one.
AGES_AFTER: Final = 10  # Seconds after which a page is drawn again in any case: it says how long things take.


def live(view: View, mark: Mark, alias: Callable[[], str]) -> View:
    """
    Let open pages of a view ask whether they are still as they were.

    A request without the header ``X-Timeline-Seen`` is answered as ever. One that names the version that would be shown now is
    answered with 204; any other with the page, as this user may see it now, and its version. A version is worth something
    only for the same address, user and rights: whoever lost a right gets the view's own refusal.

    Args:
        view: Shows the page, after its own look at rights.
        mark: Gives what changes with the page: ``mark(request, using, **arguments of the view)``.
        alias: Names the database whose tasks are shown.
    """

    @wraps(view)
    def watched(request: HttpRequest, *args: Any, **named: Any) -> HttpResponse:
        seen = request.headers.get(SEEN)
        if seen is None or request.method != "GET":
            return view(request, *args, **named)
        using = alias()
        version = _version(request, using, mark(request, using, **named))
        if seen == version:
            return HttpResponse(status=204, headers={VERSION: version, "Cache-Control": "no-store, private"})
        response = view(request, *args, **named)
        if isinstance(response, TemplateResponse):
            response[VERSION] = version
        return response

    return watched


def of_all(_request: HttpRequest, using: str) -> tuple[Any, ...]:
    """What changes with any task, run or hold: for pages that list them. Four reads of primary keys."""
    return (
        _newest(LogEntry, using),
        _newest(ScheduledTask, using),
        _newest(RunEntry, using),
        list(Hold.objects.using(using).order_by("-pk").values_list("pk", "lifted_at", "released_at")[:OVERLAP]),
    )


def of_task(_request: HttpRequest, using: str, *, object_id: UUID) -> tuple[Any, ...]:
    """What changes with one task: its number of moves, and its steps."""
    columns = ("seq", "state", "previous_id", "run__ended_at", "run__moves")
    row = ScheduledTask.objects.using(using).filter(pk=object_id).values_list(*columns).first()
    if row is None:
        return ()
    origin = origins_of({object_id: row[2]}, using=using)[object_id]
    steps = StepRecord.objects.using(using).filter(origin=origin)
    return (row, steps.aggregate(Count("pk"), Max("pk"), Sum("done"), Max("recorded_at"), Sum("attempt")))


def of_entity(request: HttpRequest, using: str) -> tuple[Any, ...]:
    """What changes with an entity: how often its tasks and its runs have moved, and how many there are."""
    ref = exact_ref(request.GET.get("label", ""), request.GET.get("id", ""))
    if ref is None:
        return ()
    if (
        not ref.label or ref.label in accounts()
    ):  # The system has any number of tasks; of a user, what is theirs is shown.
        return of_all(request, using)
    tasks = ScheduledTask.objects.using(using).for_entity(ref).aggregate(Count("pk"), Sum("seq"))
    runs = TimelineRun.objects.using(using).for_entity(ref).aggregate(Count("pk"), Count("ended_at"), Sum("moves"))
    holds = Hold.objects.using(using).order_by("-pk").values_list("pk", "lifted_at", "released_at")[:OVERLAP]
    return (tasks, runs, list(holds))


def _newest(model: type[Model], using: str) -> list[Any]:
    return list(model._default_manager.using(using).order_by("-pk").values_list("pk", flat=True)[:OVERLAP])


def _version(request: HttpRequest, using: str, mark: tuple[Any, ...]) -> str:
    """Sign the mark with all that decides what is shown: who looks, what they may do, where, in which language, and when."""
    user = request.user
    ages = (int(time.time()) // AGES_AFTER, int(story_now(using).timestamp()) // AGES_AFTER)
    rights = (user.pk, user.is_active, getattr(user, "is_staff", False), sorted(user.get_all_permissions()))
    told = repr((rights, request.get_full_path(), getattr(request, "LANGUAGE_CODE", ""), ages, mark))
    return salted_hmac("timeline.admin.watching", told).hexdigest()
