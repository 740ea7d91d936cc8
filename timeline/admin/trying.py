"""The page "What if": another date, or an event, and what an entity would have ahead then. Nothing of it happens."""

from __future__ import annotations

from datetime import date, datetime, tzinfo
from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext, pgettext_lazy

from timeline import shortcuts
from timeline.admin.drawing import Drawing, drawing
from timeline.admin.entities import Item
from timeline.admin.looking import look_at, may_look
from timeline.admin.naming import called, named
from timeline.admin.pages import Pages, policy_of
from timeline.clocks import story_now
from timeline.exceptions import TimelineError
from timeline.models import EntityRef, exact_ref, model_of
from timeline.models.families import kinds_of
from timeline.operations.trying import anchors_of
from timeline.reading.comparing import Becomes
from timeline.registry import registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.reading.comparing import Effect

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


class WhatIfPages(Pages):
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
        now, zone = story_now(self.alias), timezone.get_default_timezone()
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
            "events": events,
            "signs": [
                (THEN, pgettext("timeline", "as it would be")),
                (UNTIL_NOW, pgettext("timeline", "as it is now")),
            ],
            **told,
        }
        return self.page(request, "what_if", pgettext("timeline", "What if"), now, context)

    def _told(self, ref: EntityRef, form: WhatIfForm, *, now: datetime, zone: tzinfo) -> dict[str, Any]:
        try:
            found = shortcuts.what_if(
                ref,
                fields=form.changed(),
                timeline=form.cleaned_data["timeline"],
                event=form.cleaned_data["event"].strip(),
                using=self.alias,
            )
        except TimelineError as error:
            return {"effects": None, "problem": str(error)}
        effects = [(effect, called(effect.task_key)) for effect in found]
        return {"effects": effects, "drawing": _drawn(found, now=now, zone=zone)}


def _has_field(ref: EntityRef, name: str) -> bool:
    model = model_of(ref.label)
    return model is not None and any(field.name == name for field in model._meta.get_fields())


def _timelines_of(ref: EntityRef) -> list[str]:
    """Timelines that are about it."""
    kinds = kinds_of(ref.label)
    return sorted(known.name for known in registry if known.label in kinds)


def _events_of(ref: EntityRef) -> list[str]:
    """Events that mean something to timelines about it."""
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
