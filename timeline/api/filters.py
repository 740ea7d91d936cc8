"""Which tasks: filters that ask the questions of ``ScheduledTaskQuerySet``."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema_field

from timeline.api.fields import nearest, read_instant
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.models.task import ScheduledTaskQuerySet
from timeline.timing import EARLIEST, LATEST


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "description": description}


def _moment(description: str) -> dict[str, Any]:
    return {"type": "string", "format": "date-time", "description": description}


class InstantFormField(forms.CharField):
    """An aware moment, as close to it as rows can be."""

    def to_python(self, value: Any) -> Any:
        """Take ISO 8601 text with an offset."""
        text = super().to_python(value)
        if not text:
            return None
        if (moment := read_instant(text)) is None:
            raise forms.ValidationError(_("Give a moment with its offset, as in 2026-03-01T09:00:00Z."))
        return nearest(moment)


class StatesFormField(forms.MultipleChoiceField):
    """States, each by its name."""

    def validate(self, value: list[str]) -> None:
        """Refuse a name that is none, and tell those there are."""
        for name in value:
            if name not in State.values:
                said = {"state": name, "states": ", ".join(State)}
                problem = _("There is no state “%(state)s”. Give one of %(states)s; repeat the parameter for several.")
                raise forms.ValidationError(problem, params=said)  # Who reads it fills it in, once.


class StatesFilter(filters.MultipleChoiceFilter):
    """Compares with one state or several."""

    field_class = StatesFormField


class InstantFilter(filters.Filter):
    """Compares with a moment."""

    field_class = InstantFormField


class TextFilter(filters.CharFilter):
    """Compares with text as it was sent."""

    def __init__(self, **options: Any) -> None:
        super().__init__(strip=False, **options)


class TaskFilters(filters.FilterSet):
    """Subclass it to ask more, and name it in a subclass of the view."""

    state = StatesFilter(
        method="in_states",
        choices=State.choices,
        help_text="Where it stands; repeat it to ask for several: `state=scheduled&state=retryable`.",
    )
    task = TextFilter(method="of_task", max_length=101)
    timeline = TextFilter(method="of_timeline", max_length=50)
    due_after = InstantFilter(method="from_moment")
    due_before = InstantFilter(method="before_moment")

    class Meta:
        model = ScheduledTask
        fields: list[str] = []

    def in_states(self, tasks: ScheduledTaskQuerySet, _name: str, states: list[str]) -> ScheduledTaskQuerySet:
        """Tasks in one of these states; none given: in any."""
        return tasks.filter(state__in=sorted(states)) if states else tasks

    @extend_schema_field(_text("Key of the task, `trial.remind`."))
    def of_task(self, tasks: ScheduledTaskQuerySet, _name: str, task_key: str) -> ScheduledTaskQuerySet:
        """Tasks of this key."""
        return tasks.with_handler([task_key])

    @extend_schema_field(_text("Name of the timeline, `trial`."))
    def of_timeline(self, tasks: ScheduledTaskQuerySet, _name: str, timeline: str) -> ScheduledTaskQuerySet:
        """Tasks of this timeline."""
        return tasks.of_timeline(timeline)

    @extend_schema_field(_moment("Due at this moment or later."))
    def from_moment(self, tasks: ScheduledTaskQuerySet, _name: str, moment: datetime) -> ScheduledTaskQuerySet:
        """Tasks due from this moment on."""
        return tasks.due_between(moment, LATEST)

    @extend_schema_field(_moment("Due before this moment."))
    def before_moment(self, tasks: ScheduledTaskQuerySet, _name: str, moment: datetime) -> ScheduledTaskQuerySet:
        """Tasks due before this moment."""
        return tasks.due_between(EARLIEST, moment)
