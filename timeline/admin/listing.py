"""The list of upcoming events: rows in bands, the strip, the filters."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from timeline.admin.asking import ALL, ENDED, OPEN_ONES, OVERDUE, Question
from timeline.admin.days import in_bands, is_overdue
from timeline.admin.naming import Named, names_of
from timeline.admin.paging import page_of
from timeline.admin.strip import DAYS, strip_of
from timeline.lifecycle import State
from timeline.reading.explaining import why
from timeline.reading.masking import masked
from timeline.registry import registry

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

    from timeline.models import ScheduledTask
    from timeline.models.task import ScheduledTaskQuerySet


class Row(NamedTuple):
    """One line of a list of tasks."""

    task: ScheduledTask
    entity: Named
    why: str
    is_overdue: bool


class Choice(NamedTuple):
    """One choice of a filter."""

    value: str
    title: str
    is_chosen: bool


class Chip(NamedTuple):
    """A filter in force, and the address of the list without it."""

    name: str
    value: str
    without: str


class Listed(NamedTuple):
    """A band of rows."""

    name: str
    title: StrPromise
    rows: list[Row]


def listing(
    tasks: ScheduledTaskQuerySet, question: Question, *, now: datetime, zone: tzinfo, payload: bool, site: str
) -> dict[str, Any]:
    """
    Put together what the list shows.

    Args:
        tasks: Those the user may see.
        question: What is asked of them.
        now: Story time.
        zone: The site's.
        payload: Whether the user may read errors.
        site: Name of the admin site, for addresses.
    """
    page = page_of(tasks, question, now=now, zone=zone)
    names = names_of((task.entity_ref for task in page.tasks), using=tasks.db, site=site)
    rows = {task.pk: row_of(task, names[task.entity_ref], now, payload) for task in page.tasks}
    bands = in_bands(page.tasks, now=now, zone=zone)
    plain = {"after": None, "before": None}
    return {
        "bands": [Listed(band.name, band.title, [rows[task.pk] for task in band.tasks]) for band in bands],
        "shown": len(page.tasks),
        "next": question.where(**plain | {"after": page.next}) if page.next else "",
        "previous": question.where(**plain | {"before": page.previous}) if page.previous else "",
        "first": question.where(**plain) if page.previous else "",
        "strip": strip_of(tasks, question, now=now, zone=zone),
        "strip_days": DAYS,
        "everywhere": question.where(state=ALL, **plain) if question.state != ALL else "",
    }


def row_of(task: ScheduledTask, entity: Named, now: datetime, payload: bool) -> Row:
    """Put together one line."""
    return Row(task, entity, why(task if payload else masked(task)), is_overdue(task, now))


def filters(question: Question) -> dict[str, list[Choice]]:
    """The choices of each filter. What a row may have and no timeline declares (any more) is there while it is chosen."""
    timelines = sorted(definition.name for definition in registry)
    kinds = sorted({definition.label for definition in registry if definition.label})
    keys = [key for key in registry.task_keys() if not question.timeline or key.startswith(f"{question.timeline}.")]
    return {
        "state": [Choice(value, title, value == question.state) for value, title in _states().items()],
        "timeline": _choices(timelines, question.timeline),
        "task": _choices(keys, question.task),
        "kind": _choices(kinds, question.kind),
    }


def chips(question: Question) -> list[Chip]:
    """The filters in force."""
    said = {
        "state": (_("State"), "" if question.state == OPEN_ONES else _states()[question.state]),
        "timeline": (_("Timeline"), question.timeline),
        "task": (_("Task"), question.task),
        "kind": (_("Kind"), question.kind),
        "day": (_("Day"), date_format(question.day) if question.day else ""),
        "q": (_("Search"), question.q),
    }
    default = Question()
    plain = {"after": None, "before": None}
    return [
        Chip(title, value, question.where(**{field: getattr(default, field)}, **plain))
        for field, (title, value) in said.items()
        if value
    ]


def _states() -> dict[str, str]:
    return {
        OPEN_ONES: _("open"),
        OVERDUE: _("overdue"),
        **{state.value: str(state.label) for state in State},
        ENDED: _("ended"),
        ALL: _("all"),
    }


def _choices(values: list[str], chosen: str) -> list[Choice]:
    unknown = [chosen] if chosen and chosen not in values else []
    return [Choice(value, value, value == chosen) for value in [*values, *unknown]]
