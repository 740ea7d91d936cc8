"""What a page shows, and its mark: figures of one statement that are others once something of it has changed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID
from zlib import crc32

from django.db import connections
from django.db.models import BigIntegerField, Case, Count, Q, Sum, Value, When
from django.db.models.functions import Cast
from django.utils.crypto import constant_time_compare, salted_hmac

from timeline.clocks import MachineTime, is_told, story_now
from timeline.conf import get_settings
from timeline.dialects import dialect_of
from timeline.hooks import hooks
from timeline.lifecycle import State
from timeline.models import EntityRef, Event, ScheduledTask, Sign, TimelineRun
from timeline.models.task_records import figures_of_records, origins_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import Aggregate, QuerySet
    from django.http import HttpRequest


Told = tuple[Any, ...]

NEWEST: Final = 100  # Of what is in the way, as in ``sql/mark_everything.sql``.

# Periods for which who was shown a page may ask whether it has changed, without the view's own look.
LET_IN_FOR: Final = 6
AGES_AFTER: Final = 30  # Seconds after which a page is drawn again in any case: it says how long things take.
RIGHTS_AFTER: Final = 10  # Seconds after which is looked again at what somebody may do, where nothing has changed.
NOBODY: Final = "nobody"


@dataclass(frozen=True)
class Everything:
    """Any task: pages that list them. Its mark also says whether that of anything else may have changed."""

    def mark(self, using: str) -> Told:
        with connections[using].cursor() as cursor:
            cursor.execute(dialect_of(using).sql("mark_everything"))
            return tuple(cursor.fetchone())


@dataclass(frozen=True)
class OneTask:
    """A task: its moves, its run's, and its steps."""

    task_id: UUID

    def mark(self, using: str) -> Told:
        try:
            origin = _origin(self.task_id, using)
        except ScheduledTask.DoesNotExist:
            return ()
        row = (
            ScheduledTask.objects.using(using)
            .filter(pk=self.task_id)
            .values_list(
                "state",
                "seq",
                "run__ended_at",
                "run__moves",
                *figures_of_records(origin),
            )
            .first()
        )
        return row or ()


@dataclass(frozen=True)
class OneEntity:
    """An entity: how often its tasks and runs have moved, how many events there are, and what is in the way of tasks."""

    label: str
    id: str

    def mark(self, using: str) -> Told:
        ref = EntityRef(self.label, self.id)
        tasks = ScheduledTask.objects.using(using).for_entity(ref)
        runs = TimelineRun.objects.using(using).for_entity(ref)
        events = Event.objects.using(using).for_entity(ref)
        figures = [
            _added_up("tasks", tasks, Count("pk"), Sum("seq"), Count("finished_at")),
            _added_up("runs", runs, Count("pk"), Sum("moves"), Count("ended_at")),
            _added_up("events", events, Count("pk")),
            *_in_the_way(using),
        ]
        return tuple(sorted(figures[0].union(*figures[1:], all=True)))


@dataclass(frozen=True)
class EverythingAndWorkers:
    """Any task, and which workers are there: each gives a sign every few seconds, of which only that one is missed is news."""

    def mark(self, using: str) -> Told:
        is_missed = Q(seen_at__lt=MachineTime(-get_settings().missed_after))
        signs = Sign.objects.using(using).annotate(is_missed=Case(When(is_missed, then=True), default=False))
        return (*EVERYTHING.mark(using), *signs.order_by("worker").values_list("worker", "is_missed"))


Subject = Everything | EverythingAndWorkers | OneTask | OneEntity
EVERYTHING: Final = Everything()


def is_restless(subject: Subject, told: Told) -> bool:
    """Whether something of it may change and ``Everything`` not: signs, and records of steps, are written in place."""
    if isinstance(subject, OneTask):
        return bool(told) and told[0] == State.ACTIVE
    return isinstance(subject, EverythingAndWorkers)


@lru_cache(maxsize=4096)
def _origin(task_id: UUID, using: str) -> UUID:
    """The idempotency key of a task: it stays, as the revisions before it have ended."""
    previous = ScheduledTask.objects.using(using).values_list("previous_id", flat=True).get(pk=task_id)
    return origins_of({task_id: previous}, using=using)[task_id]


def _in_the_way(using: str) -> Iterator[QuerySet[Any, Told]]:
    for number, each in enumerate(hooks().hindrances):
        rows, figures = each.newest(most=NEWEST, using=using)
        yield _added_up(f"hindrance {number}", rows, *figures)


def _added_up(name: str, rows: QuerySet[Any], *figures: Aggregate) -> QuerySet[Any, Told]:
    """Up to three figures of all rows, as one row; each name but once."""
    told = {f"figure_{place}": Cast(figure, BigIntegerField()) for place, figure in enumerate(figures)}
    missing = {f"figure_{place}": Value(0, BigIntegerField()) for place in range(len(figures), 3)}
    of_all: QuerySet[Any, Any] = (
        rows.order_by().annotate(name_of=Value(name)).values("name_of").annotate(**told, **missing)
    )
    return of_all.values_list("name_of", "figure_0", "figure_1", "figure_2")


class Version(NamedTuple):
    """``content`` digests what a page shows, ``rights`` what its reader may do, read in ``period`` as ``seal`` proves."""

    content: str
    rights: str
    period: str
    seal: str

    def __str__(self) -> str:
        return ".".join(self)


def read_version(text: str) -> Version | None:
    """Read what a page says that it shows; None: it is none of ours. Whether it is true, only ``version_of`` says."""
    parts = text.split(".")
    return Version(*parts) if len(parts) == 4 and text.isascii() else None


def version_of(request: HttpRequest, mark: tuple[Any, ...], *, using: str, seen: Version | None) -> Version:
    """What a page would show now. If the rights of ``seen`` were read in this period, they are not read again."""
    period, who, path = _period(), _who(request), request.get_full_path()
    is_known = seen is not None and seen.period == str(period) and _is_ours(request, seen)
    rights = seen.rights if seen and is_known else rights_of(getattr(request, "user", None))
    shift = crc32(repr((who, path)).encode()) % AGES_AFTER  # Not all pages in the same second.
    ages = (
        (int(time.time()) + shift) // AGES_AFTER,
        int(story_now(using).timestamp()) // AGES_AFTER if is_told() else 0,
    )
    content = _digest("content", who, rights, path, getattr(request, "LANGUAGE_CODE", ""), ages, mark)
    return Version(content, rights, str(period), _seal(request, rights, str(period)))


def was_let_in(request: HttpRequest, seen: Version | None) -> bool:
    """Whether who asks was shown this page, within the last minute."""
    return seen is not None and _is_ours(request, seen) and _period() - int(seen.period) <= LET_IN_FOR


def _is_ours(request: HttpRequest, seen: Version) -> bool:
    return constant_time_compare(seen.seal, _seal(request, seen.rights, seen.period))


def _seal(request: HttpRequest, rights: str, period: str) -> str:
    return _digest("seal", _who(request), request.get_full_path(), rights, period)


def _who(request: HttpRequest) -> tuple[object, ...]:
    user = getattr(request, "user", None)
    return (user.pk, user.is_active, getattr(user, "is_staff", False)) if user is not None else ()


def _period() -> int:
    return int(time.time()) // RIGHTS_AFTER


def rights_of(user: Any) -> str:
    """Digest what somebody may do. Asks the database as Django's backends do; nothing, for who is not logged in."""
    if user is None or not user.is_authenticated:
        return NOBODY
    permissions: set[str] = getattr(user, "get_all_permissions", set)()  # A model of users need not have any.
    return _digest("rights", user.pk, user.is_active, getattr(user, "is_staff", False), sorted(permissions))


def _digest(*told: object) -> str:
    return salted_hmac("timeline.live", repr(told), algorithm="sha256").hexdigest()
