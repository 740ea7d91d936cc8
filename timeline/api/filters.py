"""Which tasks: filters that ask the questions of ``ScheduledTaskQuerySet``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, cast

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema_field
from rest_framework.exceptions import ValidationError

from timeline.api.fields import nearest, read_instant
from timeline.exceptions import WrongEntity
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.models.task import ScheduledTaskQuerySet
from timeline.registry import registry
from timeline.suggestions import near, with_meant
from timeline.timing import EARLIEST, LATEST

if TYPE_CHECKING:
    from timeline.models.task import ScheduledTaskQuerySet


NAMES: Final = ("timeline", "task", "group")


def refuse_unknown_names(meant: Mapping[str, Any], visible: ScheduledTaskQuerySet, *, within: str = "") -> None:
    """
    Refuse names that neither the code nor a task that the user may see knows: rows may be about what the code has no longer.

    ``within`` is the part of the body that ``meant`` is; empty: the address. ``ValidationError`` names the parameter.
    """
    for name in NAMES:
        given = meant.get(name) or ""
        known = _known(name)
        if given and given not in known and not _is_there(name, given, visible):
            problem = {name: said_unknown(given, known)}
            raise ValidationError({within: problem} if within else problem)


def no_timeline_about(label: str) -> WrongEntity:
    """The error for a kind of entities that no timeline is about."""
    remedy = gettext_lazy("Give the label of a model that one is about.")
    labels = {known.label for known in registry if known.label}
    return WrongEntity(gettext_lazy("no timeline is about %(label)r."), with_meant(remedy, label, labels), label=label)


def said_unknown(given: str, known: Iterable[str]) -> str:
    """Say that there is no such name, and which one is meant, perhaps."""
    meant = near(given, known, most=1)
    if not meant:
        return _("There is no %(name)r here.") % {"name": given}
    said = {"name": given, "near": meant[0]}
    return _("There is no %(name)r here. Did you mean %(near)r?") % said


def _known(name: str) -> list[str]:
    if name == "timeline":
        return [known.name for known in registry]
    return registry.task_keys() if name == "task" else []


def _is_there(name: str, given: str, visible: ScheduledTaskQuerySet) -> bool:
    if "\x00" in given:  # Which no database looks for.
        return False
    if name == "timeline":
        return visible.of_timeline(given).exists()
    return (visible.with_handler([given]) if name == "task" else visible.failed_alike(given)).exists()


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "description": description}


def _moment(description: str) -> dict[str, Any]:
    return {"type": "string", "format": "date-time", "description": description}


class InstantFormField(forms.CharField):
    """An aware moment, as close to it as rows can be."""

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        if not text:
            return None
        if (moment := read_instant(text)) is None:
            raise forms.ValidationError(_("Give a moment with its offset, as in 2026-03-01T09:00:00Z."))
        return nearest(moment)


class StatesFormField(forms.MultipleChoiceField):
    """States, each by its name."""

    def validate(self, value: list[str]) -> None:
        for name in value:
            if name not in State.values:
                said = {"state": name, "states": ", ".join(State)}
                problem = _("There is no state “%(state)s”. Give one of %(states)s; repeat the parameter for several.")
                raise forms.ValidationError(problem, params=said)  # Who reads it fills it in, once.


class StatesFilter(filters.MultipleChoiceFilter):
    field_class = StatesFormField


class InstantFilter(filters.Filter):
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

    @property
    def _visible(self) -> ScheduledTaskQuerySet:
        return cast("ScheduledTaskQuerySet", self.queryset)

    def in_states(self, tasks: ScheduledTaskQuerySet, _name: str, states: list[str]) -> ScheduledTaskQuerySet:
        return tasks.filter(state__in=sorted(states)) if states else tasks

    @extend_schema_field(_text("Key of the task, `trial.remind`."))
    def of_task(self, tasks: ScheduledTaskQuerySet, _name: str, task_key: str) -> ScheduledTaskQuerySet:
        """Tasks of this key; it is refused where there is no such task."""
        refuse_unknown_names({"task": task_key}, self._visible)
        return tasks.with_handler([task_key])

    @extend_schema_field(_text("Name of the timeline, `trial`."))
    def of_timeline(self, tasks: ScheduledTaskQuerySet, _name: str, timeline: str) -> ScheduledTaskQuerySet:
        """Tasks of this timeline; it is refused where there is no such timeline."""
        refuse_unknown_names({"timeline": timeline}, self._visible)
        return tasks.of_timeline(timeline)

    @extend_schema_field(_moment("Due at this moment or later."))
    def from_moment(self, tasks: ScheduledTaskQuerySet, _name: str, moment: datetime) -> ScheduledTaskQuerySet:
        return tasks.due_between(moment, LATEST)

    @extend_schema_field(_moment("Due before this moment."))
    def before_moment(self, tasks: ScheduledTaskQuerySet, _name: str, moment: datetime) -> ScheduledTaskQuerySet:
        return tasks.due_between(EARLIEST, moment)
