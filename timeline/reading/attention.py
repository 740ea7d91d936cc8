"""What waits for a person, counted in one way for all faces, each count up to a bound: so that no two of them contradict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.apps import apps
from django.core.exceptions import EmptyResultSet
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.expressions import Combinable
from django.utils.formats import number_format
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from timeline.conf import get_settings
from timeline.hooks import hooks
from timeline.lifecycle import ReasonCode, State
from timeline.models import ScheduledTask, TimelineRun
from timeline.store.bounded_counts import Counted, counted_apart
from timeline.store.index_selection import USUAL
from timeline.store.multi_query import Words

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet


MAX_COUNTED: Final = 10_000  # Rows counted at most: a probe must not cause the load that it reports.


class Ask(NamedTuple):
    """A name, and the rows that count for it, in the order of the index that finds them."""

    name: str
    rows: QuerySet[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """
    How much waits for a person. A count of ``MAX_COUNTED`` means at least so many.

    Args:
        dead_letters: Tasks that were discarded, however long ago, and not redriven.
        people: Runs of machines in states that ask for a person, and tasks that ask for approval.
        in_doubt: Tasks that rest until somebody says whether a step has happened.
        changed: Tasks that rest because their code has changed, until it fits or somebody decides.
        closed: Places of limits that a task has closed.
        holds: Holds without an end.
        endpoints: Endpoints of webhooks that fail, or were disabled because they did.
    """

    dead_letters: int = 0
    people: int = 0
    in_doubt: int = 0
    changed: int = 0
    closed: int = 0
    holds: int = 0
    endpoints: int = 0

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> Waiting:
        """Take the counts of ``asks_of_waiting``; others are left out."""
        return cls(**{name: counts.get(name, 0) for name in cls.__dataclass_fields__})

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self.as_data().values())

    def as_data(self) -> dict[str, int]:
        """Write it as plain data."""
        return asdict(self)


def asks_of_waiting(
    tasks: ScheduledTaskQuerySet,
    *,
    runs: bool = True,
    holds: bool = True,
    others: bool = True,
    now: datetime | Combinable,
) -> list[Ask]:
    """
    What to count. ``tasks`` are those that the reader may see; the rest: whether they may see all runs, all holds, and what is
    of other apps, too.
    """
    asks = [
        Ask("dead_letters", _dead(tasks).order_by("fingerprint", "finished_at", "pk")),
        Ask("in_doubt", tasks_resting(tasks, ReasonCode.IN_DOUBT)),
        Ask("changed", tasks_resting(tasks, ReasonCode.DEFINITION)),
        *(Ask(*each) for ask in hooks().asks for each in ask(tasks, runs=runs, holds=holds, now=now)),
    ]
    return [*asks, *(Ask(*each) for each in _asks_of_apps(tasks.db))] if others else asks


def _asks_of_apps(using: str) -> Iterator[tuple[str, QuerySet[Any]]]:
    """What waits of the apps of the package that are installed: ``asks`` of their configuration names a function."""
    for config in apps.get_app_configs():
        if config.name.startswith("timeline.") and (named := getattr(config, "asks", "")):
            yield from import_string(named)(using)


def _dead(tasks: ScheduledTaskQuerySet) -> ScheduledTaskQuerySet:
    """As ``dead_letters``, but each row is asked by the index of predecessors: PostgreSQL might read all rows for a join."""
    later = ScheduledTask.objects.using(tasks.db).filter(previous=OuterRef("pk")).values("pk")[:1]
    return tasks.failed_alike().alias(later=Subquery(later)).filter(later__isnull=True)


def tasks_resting(tasks: ScheduledTaskQuerySet, code: ReasonCode) -> ScheduledTaskQuerySet:
    """Tasks that rest for this reason, until somebody decides, the first to look again first."""
    rest = tasks.filter(state=State.RETRYABLE, reason_code=code)
    # As the index has it.
    return rest.exclude(state=State.CANCELLED).exclude(reason_code__in=USUAL).in_order()


def as_counted(asks: Iterable[Ask]) -> Iterator[tuple[str, QuerySet[Any]]]:
    """As ``counted_apart`` takes them: each row has a time by the name of a task's."""
    for name, rows in asks:
        column = "state_at" if rows.model is TimelineRun else "created_at"
        yield name, rows if rows.model is ScheduledTask else rows.annotate(scheduled_at=F(column))


def counts_of(asks: Iterable[Ask], *, using: str) -> dict[str, Counted]:
    """Count in one statement: name → how many, and the earliest time of these."""
    found: Any = counted_apart(as_counted(asks), most=MAX_COUNTED, using=using)  # type: ignore[arg-type]
    return found  # type: ignore[no-any-return]


def counting(asks: Iterable[Ask], *, most: int, using: str) -> Words | None:
    """The same as a part of another statement, each up to ``most``: see ``read_counts``. None: there is nothing to count."""
    parts, values = list[str](), list[Any]()
    for name, rows in asks:
        try:
            sql, parameters = rows.values("pk")[:most].query.get_compiler(using).as_sql()
        except EmptyResultSet:
            continue
        parts.append(f"SELECT '{name}:' || COUNT(*) FROM ({sql}) AS counted")  # noqa: S608 (names of our own)
        values += parameters
    return Words(" UNION ALL ".join(parts), tuple(values)) if parts else None


def read_counts(found: Iterable[str], *, most: int) -> dict[str, int]:
    """Read what ``counting`` has found: name → how many, up to ``most``."""
    counts: dict[str, int] = {}
    for each in found:
        name, _colon, number = each.partition(":")
        counts[name] = min(counts.get(name, 0) + int(number), most)
    return counts


def asks_of_overdue(free: ScheduledTaskQuerySet, *, now: datetime) -> list[Ask]:
    """Tasks that are overdue with nothing in the way, by what does not happen. ``free``: no hold is over them."""
    late = free.not_waiting_for_a_place().late(now - get_settings().overdue_after)
    names = ("untaken", "unclaimed", "unstarted")
    return [Ask(name, part.in_order()) for name, part in zip(names, late, strict=True)]


def waiting_in_words(waiting: Waiting) -> dict[str, str]:
    """Say of each kind of which there is something how much waits, in the order of ``Waiting``: its name → a few words."""
    said = {
        "dead_letters": ngettext(
            "%(count)s task failed for good", "%(count)s tasks failed for good", waiting.dead_letters
        ),
        "people": ngettext("%(count)s waits for a person", "%(count)s wait for a person", waiting.people),
        "in_doubt": ngettext("%(count)s step is in doubt", "%(count)s steps are in doubt", waiting.in_doubt),
        "changed": ngettext("%(count)s rests: its code changed", "%(count)s rest: their code changed", waiting.changed),
        "closed": ngettext(
            "%(count)s place of a limit is closed", "%(count)s places of limits are closed", waiting.closed
        ),
        "holds": ngettext("%(count)s hold without an end", "%(count)s holds without an end", waiting.holds),
        "endpoints": ngettext("%(count)s endpoint fails", "%(count)s endpoints fail", waiting.endpoints),
    }
    counts = waiting.as_data()
    return {name: text % {"count": told_count(counts[name])} for name, text in said.items() if counts[name]}


def told_count(number: int) -> str:
    """Write a count: ``1,204``, or ``10,000 or more`` if counting has stopped there."""
    said = number_format(number, force_grouping=True)
    return _("%(count)s or more") % {"count": said} if number >= MAX_COUNTED else said
