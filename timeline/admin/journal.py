"""The page of who did what."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import pgettext

from timeline.admin.before_again import Whom, first_of, whom
from timeline.admin.list_query import bounds
from timeline.admin.pages import Pages, policy_of
from timeline.admin.references import Called, called, names_of
from timeline.admin.subject import Reader, sees_entity
from timeline.admin.task_list import FilterChip
from timeline.models import EntityRef, Hold, Scope
from timeline.reading.deeds import Deed, Journal, JournalPlace, journal
from timeline.timing import EARLIEST, LATEST

if TYPE_CHECKING:
    from timeline.models import ScheduledTask

_LONGEST: Final = 150  # Of an actor's name.


class JournalLine(NamedTuple):
    """What was done: ``called`` and ``where`` are the task's, or ``what`` is on hold. ``by`` leads to all of this actor."""

    deed: Deed
    by: str
    whom: Whom
    called: Called | None = None
    where: str = ""
    what: str = ""


class JournalPages(Pages):
    """Who may see all tasks reads who decided about them, as far as the policy shows it."""

    def journal_view(self, request: HttpRequest) -> HttpResponse:
        """Show it, the latest first: all, what one actor did, or what was done on one day."""
        if not request.user.has_perm("timeline.view_scheduledtask"):
            raise PermissionDenied
        now, zone = self.now_of(request), timezone.get_current_timezone()
        actor = request.GET.get("actor", "").replace("\x00", "")[:_LONGEST]
        day = _day(request.GET.get("day", ""))
        begin, end = bounds(day, zone) if day is not None else (None, None)
        found = self._journal_of(request, actor, begin, end, _place(request.GET.get("before", "")))
        given = {"actor": actor, "day": day.isoformat() if day else ""}
        more = _where(given | {"before": _text(found.next)}) if found.next is not None else ""
        names = ("actor", pgettext("timeline", "By")), ("day", pgettext("timeline", "Day"))
        context = {
            "lines": self._journal_lines(request, found.deeds),
            "more": more,
            "actor": actor,
            "day": day,
            "days": [] if day is None else [(each, _where(given | {"day": each.isoformat()})) for each in _beside(day)],
            "chips": [FilterChip(name, given[key], _where(given | {key: ""})) for key, name in names if given[key]],
        }
        return self.page(request, "journal", pgettext("timeline", "Who did what"), now, context)

    def _journal_of(
        self,
        request: HttpRequest,
        actor: str,
        begin: datetime | None,
        end: datetime | None,
        before: JournalPlace | None,
    ) -> Journal:
        reader, visible = Reader(policy_of(request), request.user), self.visible(request)

        def readable(ids: set[UUID]) -> list[ScheduledTask]:
            tasks = visible.filter(pk__in=ids).select_related("run") if ids else visible.none()
            return [task for task in tasks if reader.reads_people(task)]

        holds = reader.policy.visible_holds(Hold.objects.using(self.alias), request.user)
        return journal(holds, readable, actor=actor, begin=begin, end=end, before=before, using=self.alias)

    def _journal_lines(self, request: HttpRequest, deeds: Iterable[Deed]) -> list[JournalLine]:
        deeds, policy, user = list(deeds), policy_of(request), request.user
        held = {deed.hold.entity_ref for deed in deeds if deed.hold is not None and deed.hold.scope == Scope.ENTITY}
        policy.look_up(user, held, using=self.alias)
        seen = {ref for ref in held if sees_entity(policy, user, ref, self.alias)}
        about = [_refs(deed, seen) for deed in deeds]
        named = (ref for refs in about for ref in first_of(refs))
        names = names_of(dict.fromkeys(named), using=self.alias, site=self.admin_site.name)
        return [_line(self.address, deed, whom(refs, names)) for deed, refs in zip(deeds, about, strict=True)]


def _line(address: Callable[..., str], deed: Deed, about: Whom) -> JournalLine:
    by = _where({"actor": deed.actor})
    if deed.task is None:
        return JournalLine(deed, by, about, what=deed.hold.what if deed.hold is not None and not about.first else "")
    where = "" if deed.tasks else address("change", deed.task.pk)
    return JournalLine(deed, by, about, called(deed.task.task_key), where)


def _refs(deed: Deed, seen: Collection[EntityRef]) -> list[EntityRef]:
    """Whom to name; of entities on hold, those that are ``seen``."""
    if deed.hold is not None:
        return [deed.hold.entity_ref] if deed.hold.entity_ref in seen else []
    return [task.entity_ref for task in (deed.task, *deed.tasks) if task is not None]


def _day(text: str) -> date | None:
    with suppress(ValueError):
        day = date.fromisoformat(text)
        return day if EARLIEST.date() < day < LATEST.date() else None
    return None


def _beside(day: date) -> list[date]:
    return [day - timedelta(days=1), day + timedelta(days=1)]


def _text(place: JournalPlace) -> str:
    return f"{place.at.isoformat()}~{place.id}"


def _place(text: str) -> JournalPlace | None:
    """As an address says it; None: it says nothing, or nothing that makes sense."""
    at, _tilde, number = text.partition("~")
    with suppress(ValueError):
        place = JournalPlace(datetime.fromisoformat(at), int(number))
        return place if place.at.tzinfo is not None and EARLIEST < place.at < LATEST and 0 <= place.id < 2**63 else None
    return None


def _where(asked: dict[str, Any]) -> str:
    return f"?{urlencode({name: value for name, value in asked.items() if value})}"
