"""Events: said by other systems, as ``emit`` says them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from django.db.models import Model
from django.utils.translation import gettext_lazy as _
from rest_framework import status
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from timeline import shortcuts
from timeline.api.base import TimelineAPI
from timeline.api.fields import find_entity
from timeline.api.filters import no_timeline_about
from timeline.api.preconditions import RequestOutcome, answer_once
from timeline.api.requests import EventBody
from timeline.api.schema import REPEATABLE, answers, described
from timeline.api.serializers import EmissionSerializer
from timeline.clocks import story_now
from timeline.exceptions import WrongEntity
from timeline.features.machines.api import (
    SCOPE,
    AskedThrottle,
    asked_run,
    asking_machine,
    key_of,
    refuse_to_stay_for_ever,
)
from timeline.features.machines.deadlines import deadlines_kept
from timeline.features.waits.approve import refuse_decided
from timeline.models import EntityRef, ScheduledTask, family_of, model_of
from timeline.models.entities import NO_ENTITY, label_of, relatives
from timeline.operations.unknown_events import refuse_unknown_event
from timeline.registry import registry
from timeline.store.transactions import atomic


class Events(TimelineAPI):
    """Events, by those who may emit; and what a machine asks for, by whom it asks."""

    serializer_class: type[EmissionSerializer] = EmissionSerializer
    throttle_classes = [*TimelineAPI.throttle_classes, AskedThrottle]

    @property
    def asked_scope(self) -> str:
        """Whose rate counts beside that of writing; empty: nobody's."""
        return "" if self.policy.may_emit(self.request.user) else SCOPE

    @described(
        operation_id="emit",
        request=EventBody,
        parameters=REPEATABLE,
        responses=answers(409, 413, 415, 422, ok=EmissionSerializer, created=EmissionSerializer),
    )
    def post(self, request: Request) -> Response:
        """
        Record what happened. The same again, with the same key, does nothing and says so; with another payload it is
        refused. So is what the state of a machine does not take. What a machine asks people for, and what approves or rejects a
        task, takes their right beside that of emitting. Who may not emit may say what a machine asks them for: with `machine`
        and `entity`.
        """
        may_emit, asks = self.policy.may_emit(request.user), any(known.asked_in for known in registry)
        if not may_emit and not asks:
            raise PermissionDenied
        body = EventBody(data=request.data)
        if not may_emit and not body.is_valid():
            raise PermissionDenied  # Who may say nothing is told nothing.
        body.is_valid(raise_exception=True)
        given = body.validated_data if may_emit else self._as_asked(body.validated_data)
        ref = None if given.get("entity") is None else EntityRef(**given["entity"])
        using = self.get_using(ScheduledTask if ref is None else self._model(ref.label))
        if may_emit and not self.policy.may_say(request.user, given["name"], ref or NO_ENTITY, using=using):
            raise PermissionDenied
        # Of whom it is about, the answer has no more than the request; so who may emit may have it again as it was.
        return answer_once(request, partial(self._emit, given, ref, using), using=using)

    def _as_asked(self, given: dict[str, Any]) -> dict[str, Any]:
        """What somebody who may not emit says, with a key of theirs; refused, if no machine asks them for it."""
        definition = asking_machine(given)
        if definition is None:
            raise PermissionDenied
        using, user = self.get_using(self._model(definition.label)), self.request.user
        run = asked_run(given, self.policy, user, using=using)
        if run is None:
            raise PermissionDenied
        refuse_to_stay_for_ever(run, definition, given["name"], using=using)
        return given | {"key": key_of(user, given["key"])}

    def _emit(self, given: dict[str, Any], ref: EntityRef | None, using: str) -> RequestOutcome:
        entity = None if ref is None else find_entity(ref, using=using)
        if entity is None and ref is not None:
            problem = _("there is no %(label)s %(id)r.")
            raise WrongEntity(problem, _("Give one that is there."), label=ref.label, id=ref.id)
        if not (given["machine"] or given["expect"]):  # A machine has its own word for what it does not know.
            refuse_unknown_event(given["name"], [(ref or NO_ENTITY).label])
        if ref is None or self.policy.may_emit(self.request.user):
            kept: AbstractContextManager[None] = nullcontext()
        else:
            kept = deadlines_kept(given["name"], ref, now=story_now(using), using=using)
        with atomic(using=using), kept:
            refuse_decided(event=given["name"], key=given["key"], ref=ref or NO_ENTITY, using=using)
            emission = shortcuts.emit(
                given["name"],
                entity,
                key=given["key"],
                payload=given["payload"],
                actor=self.actor,
                occurred_at=given.get("occurred_at"),
                machine=given["machine"] or None,
                expect=given["expect"] or None,
                using=using,
            )
        code = status.HTTP_201_CREATED if emission.recorded else status.HTTP_200_OK
        return RequestOutcome(
            self.serializer_class(emission, context={"view": self, "request": self.request}).data, code
        )

    def _model(self, label: str) -> type[Model]:
        """Find what kind of entity an event is about, among those of timelines: whoever emits learns of no other rows."""
        model = model_of(label)
        if model is None or not any(registry.knows(label_of(kind)) for kind in (*family_of(model), *relatives(label))):
            raise no_timeline_about(label)
        return model
