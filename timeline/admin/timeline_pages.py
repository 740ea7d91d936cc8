"""The pages of timelines: all that there are with how they stand, and one as a picture with live counts on each task."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.admin.pages import Pages, policy_of
from timeline.definition.names import first_paragraph
from timeline.features.machines.pictures import machine_picture
from timeline.features.recurring.reading import Next, next_runs, next_slot, next_slots, told_there
from timeline.lifecycle import ReasonCode
from timeline.policy import TimelinePolicy
from timeline.reading.inventory import inventory
from timeline.reading.picture_shapes import Chip
from timeline.reading.tallies import tallies
from timeline.reading.timeline_pictures import starts_of, timeline_picture
from timeline.registry import registry

if TYPE_CHECKING:
    from timeline.definition import Definition
    from timeline.reading.tallies import Amount, RunTally, Tallies, TaskTally


SLOTS: Final = 5  # Of the clock, that are told.


class Line(NamedTuple):
    """A timeline in the table of all; None for ``runs``: they are not told, for ``next_at``: no clock starts it."""

    name: str
    entity: str
    doc: str
    is_machine: bool
    is_in_shadow: bool
    url: str
    starts: list[str]
    chips: list[Chip]
    runs: RunTally | None
    next_at: datetime | None
    next_there: str


class TimelinePages(Pages):
    """For who may view all tasks: what is counted is counted among those that the policy lets them see."""

    def inventory_view(self, request: HttpRequest) -> HttpResponse:
        """Show all timelines, by name."""
        now = self.now_of(request)
        known = sorted(registry, key=lambda definition: definition.name)
        counted = self._counted(request, known, now, reasons=False)
        following = next_runs(known, using=self.alias)
        lines = [self._line(definition, counted, following.get(definition.name, Next()), now) for definition in known]
        context = {
            "lines": lines,
            "with_runs": bool(counted.runs),
        }
        return self.page(request, "inventory", pgettext("timeline", "Timelines"), now, context)

    def timeline_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Show one: its picture, how its tasks stand and went, and what its code says."""
        definition = next((known for known in registry if known.name == name), None)
        now = self.now_of(request)
        counted = self._counted(request, [definition] if definition else [], now, reasons=True)
        if definition is None:
            raise Http404(_("There is no such timeline."))
        [entry] = inventory([definition], now=now, using=self.alias)
        chips = {task: list(self._of_task(definition.task_key(task), counted)) for task in definition.tasks}
        context: dict[str, Any] = {
            "each": entry,
            "tasks": [(task, chips[task.name]) for task in entry.tasks],
            "slots": [(at, _there(definition, at)) for at in self._slots(definition, now)],
            "runs": counted.runs.get(name),
            "of_timeline": self._list(timeline=name),
        }
        if definition.machine is not None:
            context["machine"] = machine_picture(definition, here=counted.states)
        else:
            context["picture"] = timeline_picture(definition, chips)
        return self.page(request, "timeline", name, now, context)

    def _counted(self, request: HttpRequest, known: list[Definition], now: datetime, *, reasons: bool) -> Tallies:
        """Count what they may see. Runs are told only where the policy shows such a person all tasks."""
        if not request.user.has_perm("timeline.view_scheduledtask"):
            raise PermissionDenied
        sees_all = type(policy_of(request)).visible is TimelinePolicy.visible
        return tallies(known, self.visible(request), reasons=reasons, runs=sees_all, now=now)

    def _line(self, definition: Definition, counted: Tallies, following: Next, now: datetime) -> Line:
        next_at = (following.begins_at or next_slot(definition.recurring, now=now)) if definition.recurring else None
        return Line(
            name=definition.name,
            entity=definition.label,
            doc=first_paragraph(definition.cls),
            is_machine=definition.machine is not None,
            is_in_shadow=definition.shadow,
            url=self.address("timeline", definition.name),
            starts=starts_of(definition),
            chips=list(self._chips(counted.of(definition), definition.name, {"timeline": definition.name})),
            runs=counted.runs.get(definition.name),
            next_at=next_at,
            next_there=_there(definition, next_at),
        )

    def _slots(self, definition: Definition, now: datetime) -> list[datetime]:
        """The next slots: those whose runs have begun early, or were ended, are over."""
        if definition.recurring is None:
            return []
        past = next_runs([definition], using=self.alias).get(definition.name, Next()).past
        return list(islice(next_slots(definition.recurring, now=max(now, past or now)), SLOTS))

    def _of_task(self, key: str, counted: Tallies) -> Iterator[Chip]:
        tally = counted.tasks[key]
        yield from self._chips(tally, key, {"task": key})
        for code, amount in tally.cancelled.items():
            label = str(ReasonCode(code).label)
            text = _("%(count)s cancelled: %(reason)s") % {"count": amount, "reason": label}
            yield Chip(text, "cancelled", self._list(task=key, state="cancelled", reason=code), f"{text}, {key}")

    def _chips(self, tally: TaskTally, what: str, where: dict[str, str]) -> Iterator[Chip]:
        told: list[tuple[str, Amount, str, dict[str, str]]] = [
            ("open", tally.open, _("%(count)s open"), {}),
            ("overdue", tally.overdue, _("%(count)s overdue"), {"state": "overdue"}),
            ("failed", tally.failed, _("%(count)s failed in 7 days"), {"state": "discarded", "ended": "week"}),
        ]
        for kind, amount, said, narrowed in told:
            if amount:
                text = said % {"count": amount}
                yield Chip(text, kind, self._list(**where, **narrowed), f"{text}, {what}")

    def _list(self, **asked: str) -> str:
        return f"{self.address('changelist')}?{urlencode(asked)}"


def _there(definition: Definition, at: datetime | None) -> str:
    """What the clock of the schedule shows then, if it differs."""
    return told_there(at, definition.recurring.timezone) if definition.recurring and at else ""
