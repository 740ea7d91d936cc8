"""What an entity would have ahead: if a date were another, if a run began, if an event came. Nothing of it happens."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from timeline.api.base import TRYING, TimelineAPI, TryingThrottle
from timeline.api.fields import ChoiceOf, InstantField, TitleField, find_entity
from timeline.api.requests import PreviewBody
from timeline.api.schema import answers, described
from timeline.api.serializers import CODE, RowSerializer
from timeline.api.timelines import MOST_RUNS
from timeline.clocks import story_now
from timeline.definition import Definition
from timeline.engine.failures import message_of
from timeline.exceptions import TimelineError
from timeline.features.machines.choices import raised_in
from timeline.features.plans.what_if import (
    MOST_SHOWN,
    Becomes,
    Effect,
    Tried,
    effects,
    foremost,
    looker,
    not_anchored,
    refuse_many,
    try_out,
)
from timeline.models import EntityRef, ScheduledTask, TimelineRun, model_of
from timeline.models.kin import names_of
from timeline.reading.reason_texts import retold
from timeline.registry import registry

if TYPE_CHECKING:
    from timeline.models.run import TimelineRunQuerySet
    from timeline.policy import TimelinePolicy

logger = logging.getLogger("timeline")


class EffectSerializer(RowSerializer):
    """What would become of one task."""

    task = serializers.CharField(source="task_key", read_only=True, help_text="Its key; with which of many it is.")
    title = TitleField(help_text="What people call it; empty: it has no title.")
    change = ChoiceOf(Becomes, read_only=True, help_text="`gone`: called off, or not foreseen any more.")
    foreseen = serializers.BooleanField(
        source="is_foreseen", read_only=True, help_text="It has no row, or would have none."
    )
    at = InstantField(read_only=True, allow_null=True, help_text="When it is due, or expected; null: it is not ahead.")
    then_at = InstantField(read_only=True, allow_null=True, help_text="When it would be; null: it would not be ahead.")
    reason_code = serializers.SerializerMethodField(help_text=f"Why it would be gone. {CODE}")
    reason = serializers.SerializerMethodField(
        help_text="The same in words; what people wrote, only to those who may read it."
    )
    stands = serializers.CharField(
        read_only=True, help_text="Until when it would be on hold, or wait for somebody or something; empty: neither."
    )

    class Meta:
        model = ScheduledTask
        fields = ["task", "title", "change", "foreseen", "at", "then_at", "reason_code", "reason", "stands"]
        read_only_fields = fields

    def get_reason_code(self, effect: Effect) -> str:
        return effect.row.reason_code if effect.change == Becomes.GONE and effect.row is not None else ""

    def get_reason(self, effect: Effect) -> str:
        return retold(self.shown(effect.row)) if effect.change == Becomes.GONE and effect.row is not None else ""


class PreviewSerializer(serializers.Serializer[Any]):
    """What would be."""

    problem = serializers.CharField(
        read_only=True,
        help_text="Which condition or effect of the event raised what: then the rest is told without it; empty: none did.",
    )
    counts = serializers.SerializerMethodField(help_text="How many there are of each change.")
    results = EffectSerializer(
        many=True,
        read_only=True,
        help_text="By the time at which each would be due; 200 at most, those that change before those that do not.",
    )

    @extend_schema_field({"type": "object", "additionalProperties": {"type": "integer"}})
    def get_counts(self, found: dict[str, list[Effect]]) -> dict[str, int]:
        changes = [effect.change for effect in found["all"]]
        return {change.value: changes.count(change) for change in Becomes}


class _LatestRuns:
    """Reads the latest runs that a user may see; and when it reads again, these with those that began since."""

    def __init__(self, policy: TimelinePolicy, user: Any) -> None:
        self._policy, self._user = policy, user
        self._first: UUID | None = None

    def __call__(self, runs: TimelineRunQuerySet) -> list[TimelineRun]:
        if self._first is not None:
            return self._policy.runs_seen(runs.filter(pk__gte=self._first), self._user, 2 * MOST_RUNS)
        found = self._policy.runs_seen(runs, self._user, MOST_RUNS)
        self._first = min((run.pk for run in found), default=UUID(int=0))
        return found


class Preview(TimelineAPI):
    serializer_class: type[PreviewSerializer] = PreviewSerializer
    throttle_classes = [*TimelineAPI.throttle_classes, TryingThrottle]

    @property
    def trying_scope(self) -> str:
        """Whose rate counts beside that of writing: an owner's; empty: nobody's."""
        user = self.request.user
        return "" if getattr(user, "is_staff", False) and user.has_perm("timeline.view_scheduledtask") else TRYING

    @described(operation_id="preview", request=PreviewBody, responses=answers(404, 409, 413, 415, ok=PreviewSerializer))
    def post(self, request: Request, label: str, id: str) -> Response:
        """
        Say what would be ahead. It is done, looked at and undone: nothing stays, nobody is told, and no handler runs. A start
        and an event are for those who may emit; an event that a machine asks you for is for you as well.
        """
        if "\x00" in label + id:  # Which no database looks for.
            raise NotFound
        ref, using = EntityRef(label, id), self.get_using(model_of(label) or ScheduledTask)
        names = [name for name in names_of(ref, using=using) if registry.knows(name.label)]
        there = [name for name in names if find_entity(name, using=using) is not None]
        seen = self._timelines(names, using)
        if not there or not seen:
            raise NotFound
        given, ref = PreviewBody.read(request), ref if ref in there else there[0]
        change, now = self._tried(given, ref, seen, using), story_now(using)
        visible = self.policy.visible(ScheduledTask.objects.using(using), request.user)
        look = looker(ref, tasks=visible, seen=_LatestRuns(self.policy, request.user), now=now, using=using)
        refuse_many(ref, using=using)
        problem = ""
        try:
            before, after = try_out(look, ref=ref, change=change, now=now, using=using)
        except Exception as error:
            if isinstance(error, TimelineError) or raised_in(error) is None:
                raise
            logger.exception("What would come of %s for %s cannot be said.", change.event, ref)
            problem = self._raised(error)
            before, after = try_out(look, ref=ref, change=replace(change, event=""), now=now, using=using)
        found, context = effects(before, after), {"view": self, "request": request}
        shown = {"problem": problem, "all": found, "results": foremost(found, MOST_SHOWN)}
        return Response(self.serializer_class(shown, context=context).data)

    def _raised(self, error: Exception) -> str:
        """What raised an error, and which; its text is for those who may view all tasks."""
        option, name = raised_in(error) or ("", "")
        text = "" if self.trying_scope else message_of(error).encode(errors="replace").decode()
        said = {"name": name, "error": f"{type(error).__name__}: {text}".rstrip(": ")}
        if option == "when":
            return _("The condition “%(name)s” raised %(error)s. So this is told without the event.") % said
        return _("The effect “%(name)s” raised %(error)s. So this is told without the event.") % said

    def _timelines(self, names: Iterable[EntityRef], using: str) -> list[Definition]:
        """Timelines about it that the user may see; what they may not see, and what is not there, takes the same questions."""
        user = self.request.user
        return [
            known
            for known in registry
            for name in names
            if known.label == name.label and self.policy.sees_timeline(user, known.name, name, using=using)
        ]

    def _tried(self, given: dict[str, Any], ref: EntityRef, seen: Iterable[Definition], using: str) -> Tried:
        """Read what is tried, as far as the user may; only fields that tasks they see are anchored to."""
        run, event = given.get("start"), given.get("event")
        may_emit = self.policy.may_emit(self.request.user)
        if not may_emit and (run or (event and not self._is_asked(event["name"], ref, using))):
            raise PermissionDenied
        anchors = given.get("anchors", {})
        known = sorted({name for definition in seen for name in definition.anchor_fields})
        for name in anchors:
            if name not in known:
                raise not_anchored(name, known)
        said = {"event": event["name"], "payload": event["payload"], "is_asked": not may_emit} if event else {}
        return Tried(fields=anchors, **(run or {}), **said)

    def _is_asked(self, event: str, ref: EntityRef, using: str) -> bool:
        """Whether a machine of the entity asks the user for this event."""
        runs = TimelineRun.objects.using(using).open().for_entity(ref).exclude(state="")
        return any(event in self.policy.asked_of(self.request.user, run, using=using) for run in runs)


ROUTES: Final = (("entities/<str:label>/<timeline_key:id>/preview/", Preview, "entity-preview"),)
