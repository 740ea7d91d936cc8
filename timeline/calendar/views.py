"""The calendar of one person: what is ahead of them, by an address that only they know."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Final

from django.db import router
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from django.views import View
from django.views.decorators.cache import never_cache
from icalendar import Calendar, Event

from timeline.calendar.tokens import person_of
from timeline.clocks import story_now
from timeline.features.holds.reading import waits_of
from timeline.lifecycle import WAITING
from timeline.models import ScheduledTask, family_of, model_of
from timeline.models.entities import refs_as
from timeline.policy import get_policy
from timeline.registry import registry
from timeline.timing import told_time

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import Model

    from timeline.features.holds.reading import HeldTask


# How often calendar programs should look again. They decide by themselves.
_LOOK_AGAIN: Final = timedelta(hours=1)

_UNWRITABLE: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
MOST: Final = 500  # Tasks, the soonest first.


@dataclass(frozen=True, slots=True)
class Entry:
    """What a calendar says of one thing. ``uid`` is how programs know it again; ``version`` grows with each change."""

    uid: str
    version: int
    at: datetime
    title: str
    about: str


def calendar_of(entries: Iterable[Entry], *, name: str, now: datetime) -> bytes:
    """Write a calendar called ``name``, of entries in any order."""
    calendar = Calendar()
    calendar.add("prodid", "-//django-entity-timeline//EN")
    calendar.add("version", "2.0")
    calendar.add("method", "PUBLISH")
    # The standard's names (RFC 7986), and those that Apple's and Microsoft's programs read in their place.
    calendar.add("name", _clean(name))
    calendar.add("x-wr-calname", _clean(name))
    calendar.add("refresh-interval", _LOOK_AGAIN, parameters={"value": "DURATION"})
    calendar.add("x-published-ttl", f"PT{_LOOK_AGAIN // timedelta(hours=1)}H")
    for entry in entries:
        calendar.add_component(_event(entry, now))
    text: bytes = calendar.to_ical()
    return text


def _event(entry: Entry, now: datetime) -> Event:
    """One moment: it takes no time, and keeps nobody busy."""
    event = Event()
    event.add("uid", entry.uid)
    event.add("sequence", entry.version)
    event.add("dtstamp", now.astimezone(UTC))
    event.add("dtstart", entry.at.astimezone(UTC))
    event.add("summary", _clean(entry.title))
    if entry.about:
        event.add("description", _clean(entry.about))
    event.add("transp", "TRANSPARENT")
    event.add("x-microsoft-cdo-busystatus", "FREE")
    event.add("class", "PRIVATE")
    return event


def _clean(text: str) -> str:
    """Without what ends a line, or is no letter at all: the format knows no way to write that."""
    return "".join(" " if unicodedata.category(letter) in _UNWRITABLE else letter for letter in text)


@method_decorator(never_cache, name="dispatch")
class CalendarView(View):
    """
    What is ahead of the person whose token is in the address: tasks about them, and about what a timeline declares as theirs,
    as far as the policy shows them to this person. Put it at an address with a ``token``::

        path("calendar/<str:token>.ics", CalendarView.as_view(), name="my-calendar")

    A token that was revoked, that of somebody who is not active, and one that was made up are answered alike: with 404.
    """

    http_method_names = ["get", "head", "options"]
    using = ""
    """Database alias whose tasks it shows; empty: the site's routers say."""

    def title(self, task: ScheduledTask) -> str:
        """Say what a task is called, in words that this person understands; empty: leave it out. Read no payload."""
        which = f" #{task.occurrence}" if task.is_fanned_out else ""
        title = registry.told(task.task_key)[0] or f"{_words(task.timeline).capitalize()}: {_words(task.task_name)}"
        return f"{title}{which}"

    @cached_property
    def alias(self) -> str:
        return self.using or router.db_for_read(ScheduledTask)

    def get(self, _request: HttpRequest, token: str, **_captured: object) -> HttpResponse:
        person = person_of(token)
        if person is None:
            raise Http404(_("There is no such calendar."))
        now, themselves = story_now(self.alias), refs_as(person, family_of(person.__class__))
        ahead = self._ahead(person, now)
        kept = waits_of(ahead, using=self.alias)
        entries = []
        for task in ahead:
            title, held = str(self.title(task)), kept.get(task.pk)
            if title and not (held and held.is_called_off):
                about = [] if task.entity_ref in themselves else [_kind(task)]
                at = (held.comes_at if held else None) or task.scheduled_at
                entries.append(_entry(task, title, at, about, held))
        text = calendar_of(entries, name=pgettext("timeline", "What is ahead"), now=now)
        answer = HttpResponse(text, content_type="text/calendar; charset=utf-8")
        answer["Content-Disposition"] = 'inline; filename="calendar.ics"'
        answer["X-Robots-Tag"] = "noindex"
        return answer

    def _ahead(self, person: Model, now: datetime) -> list[ScheduledTask]:
        """Tasks whose time is to come. What a timeline in shadow has is left out: nothing will happen."""
        policy, tasks = get_policy(), ScheduledTask.objects.using(self.alias)
        theirs = policy.concerning(policy.visible(tasks.all(), person), person)
        shadowed = Q(pk__in=[])
        for definition in registry:
            if definition.shadow:
                shadowed |= Q(task_key__startswith=f"{definition.name}.")
        ahead = theirs.filter(scheduled_at__gt=now).exclude(shadowed)
        return list(ahead.defer("payload", "result", "error").first_of(WAITING, MOST))


def _entry(task: ScheduledTask, title: str, at: datetime, about: list[str], held: HeldTask | None) -> Entry:
    """What is on hold says so, and stands where it comes then; where nobody can say that, its title says that it may not."""
    if held is not None and held.until is None:
        title, about = _("%(title)s (on hold)") % {"title": title}, [*about, _("It waits until it is released.")]
    elif held is not None and held.until is not None:
        about = [*about, _("It waits until %(at)s.") % {"at": told_time(held.until)}]
    return Entry(str(task.pk), task.seq, at, title, " · ".join(about))


def _words(name: str) -> str:
    return name.replace("_", " ").strip()


def _kind(task: ScheduledTask) -> str:
    """What kind of thing it is about, and which one."""
    model = model_of(task.entity_label)
    return f"{model._meta.verbose_name if model else task.entity_label} {task.entity_id}".strip()
