"""The page of plans: how the rows of a timeline differ from what it says now. It reads some of them, and changes nothing."""

from __future__ import annotations

import logging
from datetime import date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext, pgettext_lazy

from timeline import shortcuts
from timeline.admin.entities import Item
from timeline.admin.entity_picture import Drawing, drawing
from timeline.admin.pages import OF_ENTITY, FeaturePage, FeaturePages, policy_of
from timeline.admin.references import called, named, names_of
from timeline.admin.subject import look_at, may_look
from timeline.exceptions import TimelineError, UnknownTimeline
from timeline.features.machines.plans import MachinePlan, machine_plans
from timeline.features.plans.apply_pages import ApplyPages, command_line
from timeline.features.plans.differ import Differs, TaskDiffers, differences_of_some
from timeline.features.plans.what_if import MOST_SHOWN, Becomes, anchors_of, foremost, refuse_many
from timeline.models import EntityRef, exact_ref, model_of
from timeline.models.entities import kinds_of
from timeline.reading.reason_texts import retold_reason
from timeline.reading.tallies import Amount, run_counts
from timeline.registry import registry
from timeline.store.task_key_stats import timelines_there

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.definition import Definition
    from timeline.features.plans.what_if import Effect


logger = logging.getLogger("timeline")
MOST: Final = 1000  # Runs that a page looks at.


class PlanPages(FeaturePages):
    """Which timelines there are to compare; and one of them, some runs at a time."""

    def plan_view(self, request: HttpRequest) -> HttpResponse:
        """Show what sweeps and ``timeline_apply`` would change of one timeline, or which there are."""
        if not request.user.has_perm("timeline.view_scheduledtask"):
            raise PermissionDenied
        now, name = self.now_of(request), request.GET.get("timeline", "")
        if not name:
            return self.page(request, "plan", pgettext("timeline", "Plan"), now, {"counts": self._open_runs()})
        try:
            definition = registry.timeline(name)
        except UnknownTimeline:
            raise Http404(_("There is no such timeline.")) from None
        context = self._compared(request, definition, _place(request.GET.get("after", "")), now)
        title = _("Plan of %(timeline)s") % {"timeline": name}
        return self.page(request, "plan", title, now, context)

    def _open_runs(self) -> list[tuple[str, Amount, bool]]:
        known = {definition.name for definition in registry}
        counts = run_counts(sorted(known.union(timelines_there(self.alias))), using=self.alias)
        return [(name, count, name in known) for name, count in counts.items() if count or name in known]

    def _compared(
        self, request: HttpRequest, definition: Definition, after: UUID | None, now: datetime
    ) -> dict[str, Any]:
        found, last = differences_of_some(definition, after=after, most=MOST, now=now, using=self.alias)
        query = {"timeline": definition.name, "after": str(last)}
        is_part = after is not None or last is not None
        return {
            "name": definition.name,
            "declared": self.address("timeline", definition.name),
            "differs": found,
            "tasks": self._tasks(request, definition, found),
            "total": run_counts([definition.name], using=self.alias)[definition.name] if is_part else None,
            "most": MOST,
            "is_part": is_part,
            "next": f"?{urlencode(query)}" if last else "",
            "first": f"?{urlencode({'timeline': definition.name})}" if after else "",
            "left": found.left.most_common(5),
            "machine": self._machine(definition),
            "may_apply": policy_of(request).may_apply(request.user),
            "plan_line": command_line("timeline_plan", definition.name, using=self.alias),
            "apply_line": command_line("timeline_apply", definition.name, using=self.alias),
        }

    def _tasks(self, request: HttpRequest, definition: Definition, found: Differs) -> list[dict[str, Any]]:
        policy, user = policy_of(request), request.user
        shown = [
            (
                name,
                task,
                [
                    sample
                    for sample in task.samples
                    if policy.sees_timeline(user, definition.name, sample.entity, using=self.alias)
                ],
            )
            for name, task in found.tasks.items()
        ]
        refs = {sample.entity for _name, _task, samples in shown for sample in samples}
        names = names_of(refs, using=self.alias, site=self.admin_site.name)
        return [
            {
                "called": called(definition.task_key(name)),
                "renamed": _renamed(definition, name),
                "differs": task,
                "cancelled": task.cancelled - task.orphaned,
                "by": _by(task),
                "samples": [
                    (sample, names[sample.entity], retold_reason(sample.reason) if sample.reason else "")
                    for sample in samples
                ],
            }
            for name, task, samples in shown
        ]

    def _machine(self, definition: Definition) -> MachinePlan | None:
        plans = machine_plans([definition], using=self.alias) if definition.machine is not None else []
        return next((plan for plan in plans if plan.has_work), None)

    ROUTES = (FeaturePage("plan", "plan/", plan_view, frozenset({"timeline", "after"})),)


def _place(after: str) -> UUID | None:
    try:
        return UUID(after) if after else None
    except ValueError:
        raise Http404(_("There is no such page.")) from None


def _renamed(definition: Definition, name: str) -> str:
    """What the method of a task is called now whose rows keep an older name; else empty."""
    declared = definition.tasks.get(name)
    return declared.method_name if declared is not None and declared.options.was else ""


def _by(task: TaskDiffers) -> tuple[str, ...]:
    if task.earliest is None or task.latest is None:
        return ()
    return tuple(dict.fromkeys(_length(shift) for shift in (task.earliest, task.latest)))


def _length(shift: timedelta) -> str:
    sign, length = ("−" if shift < timedelta() else "+"), abs(shift)
    hours, seconds = divmod(length.seconds, 3600)
    days = f"{length.days} d" if length.days else ""
    clock = f"{hours}:{seconds // 60:02}" if length.seconds else ""
    return f"{sign}{' '.join(part for part in (days, clock) if part) or '0:00'}"


THEN, UNTIL_NOW = "then", "until_now"  # How the picture calls what would be, and what is.


class WhatIfForm(forms.Form):
    """The fields that tasks are anchored to, as they are; a run that begins; and an event."""

    timeline = forms.ChoiceField(
        label=pgettext_lazy("timeline", "A run begins"),
        required=False,
        help_text=gettext_lazy("As if it were started now. If one is open already, nothing comes of it."),
    )

    event = forms.CharField(
        label=pgettext_lazy("timeline", "Event"),
        required=False,
        max_length=100,
        help_text=gettext_lazy("As if it came now. Empty: none."),
        widget=forms.TextInput(attrs={"list": "tl-events", "autocomplete": "off"}),
    )

    def __init__(
        self,
        *args: Any,
        entity: models.Model,
        names: Sequence[str],
        timelines: Sequence[str],
        events: Sequence[str],
        zone: tzinfo,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.zone = zone
        self.entity = entity
        self.names = names
        if events:
            said = _("As if it came now. Empty: none. Known: %(events)s.") % {"events": ", ".join(events)}
            self.fields["event"].help_text = said
        for name in names:
            field: Any = entity._meta.get_field(name)
            is_moment = isinstance(field, models.DateTimeField)
            kind = forms.DateTimeField if is_moment else forms.DateField
            input_type = "datetime-local" if is_moment else "date"
            widget = forms.DateTimeInput if is_moment else forms.DateInput
            self.fields[name] = kind(
                label=field.verbose_name,
                required=False,
                initial=self._shown(getattr(entity, name)),
                widget=widget(attrs={"type": input_type}),
            )
        self.order_fields([*names, "timeline", "event"])
        known = [("", pgettext("timeline", "None")), *((name, name) for name in timelines)]
        cast("forms.ChoiceField", self.fields["timeline"]).choices = known

    def _shown(self, value: datetime | date | None) -> str:
        """A value as the field of the browser reads it, to the minute."""
        if isinstance(value, datetime):
            return timezone.localtime(value, self.zone).strftime("%Y-%m-%dT%H:%M")
        return value.isoformat() if value else ""

    def changed(self) -> dict[str, Any]:
        """The fields that would hold something else: those that were typed into."""
        return {
            name: self.cleaned_data[name]
            for name in self.names
            if self.data.get(name, "") != self._shown(getattr(self.entity, name))
        }


class WhatIfPages(FeaturePages):
    """Who may see all tasks may ask what would come of a change."""

    def what_if_view(self, request: HttpRequest) -> HttpResponse:
        """Ask; and show what would be, beside what is."""
        if not request.user.has_perm("timeline.view_scheduledtask"):
            raise PermissionDenied
        ref = exact_ref(request.GET.get("label", ""), request.GET.get("id", ""))
        about = None if ref is None else look_at(ref, using=self.alias)
        if about is None or about.entity is None:
            raise Http404(_("There is no such entity."))
        if not may_look(about, self.visible(request), policy_of(request), request.user):
            raise Http404(_("There is no such entity."))
        ref, entity = about.ref, about.entity
        now, zone = self.now_of(request), timezone.get_current_timezone()
        names = [name for name in anchors_of(ref.label) if _has_field(ref, name)]
        events, asked = _events_of(ref), request.POST if request.method == "POST" else None
        form = WhatIfForm(asked, entity=entity, names=names, timelines=_timelines_of(ref), events=events, zone=zone)
        told: dict[str, Any] = {"effects": None}
        with timezone.override(zone):
            is_asked = request.method == "POST" and form.is_valid()
        if is_asked:
            told = self._told(ref, form, now=now, zone=zone)
        context = {
            "form": form,
            "has_errors": bool(form.errors) or bool(told.get("problem")),
            "entity": named(ref, entity, self.admin_site.name),
            "events": [(event, registry.title_of_event(event, ref.label)) for event in events],
            "signs": [
                (THEN, pgettext("timeline", "as it would be")),
                (UNTIL_NOW, pgettext("timeline", "as it is now")),
            ],
            **told,
        }
        return self.page(request, "what_if", pgettext("timeline", "What if"), now, context)

    def _told(self, ref: EntityRef, form: WhatIfForm, *, now: datetime, zone: tzinfo) -> dict[str, Any]:
        try:
            refuse_many(ref, using=self.alias)
            found = shortcuts.what_if(
                ref,
                fields=form.changed(),
                timeline=form.cleaned_data["timeline"],
                event=form.cleaned_data["event"].strip(),
                using=self.alias,
            )
        except TimelineError as error:
            return {"effects": None, "problem": str(error)}
        except Exception as error:
            logger.exception("What would come of a change of %s cannot be said.", ref)
            raised = {"error": f"{type(error).__name__}: {error}".rstrip(": ")}
            return {"effects": None, "problem": _("The code of this site raised %(error)s") % raised}
        shown = foremost(found, MOST_SHOWN)
        effects = [(effect, called(effect.task_key)) for effect in shown]
        return {"effects": effects, "count": len(found), "drawing": _drawn(shown, now=now, zone=zone)}

    ROUTES = (FeaturePage("what_if", "what-if/", what_if_view, OF_ENTITY, takes_forms=True),)


PAGES = (PlanPages, ApplyPages, WhatIfPages)


def _has_field(ref: EntityRef, name: str) -> bool:
    model = model_of(ref.label)
    return model is not None and any(field.name == name for field in model._meta.get_fields())


def _timelines_of(ref: EntityRef) -> list[str]:
    kinds = kinds_of(ref.label)
    return sorted(known.name for known in registry if known.label in kinds)


def _events_of(ref: EntityRef) -> list[str]:
    events = registry.events()
    return sorted({event for label in kinds_of(ref.label) for event in events.get(label, ())})


def _drawn(effects: Sequence[Effect], *, now: datetime, zone: tzinfo) -> Drawing | None:
    """What would be, filled; where it differs, what is, hollow."""
    items = []
    for effect in effects:
        if effect.then_at is not None:
            items.append(Item(effect.task_key, effect.then_at, THEN, effect.words, ""))
        if effect.at is not None and effect.change in (Becomes.MOVED, Becomes.GONE):
            items.append(Item(effect.task_key, effect.at, UNTIL_NOW, pgettext("timeline", "as it is now"), ""))
    return drawing(items, now=now, zone=zone)
