"""Events: said by other systems, as ``emit`` says them."""

from __future__ import annotations

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
from timeline.api.finding import find_entity
from timeline.api.repeating import Outcome, answer_once
from timeline.api.requests import EventBody
from timeline.api.schema import REPEATABLE, answers, described
from timeline.api.serializers import EmissionSerializer
from timeline.exceptions import WrongEntity
from timeline.models import EntityRef, ScheduledTask, TimelineRun, family_of, model_of
from timeline.models.entities import label_of
from timeline.models.families import relatives
from timeline.registry import registry


class Events(TimelineAPI):
    """Events, by those who may emit; and what a machine asks for, by whom it asks."""

    serializer_class: type[EmissionSerializer] = EmissionSerializer

    @described(
        operation_id="emit",
        request=EventBody,
        parameters=REPEATABLE,
        responses=answers(409, 413, 415, 422, ok=EmissionSerializer, created=EmissionSerializer),
    )
    def post(self, request: Request) -> Response:
        """
        Record what happened. The same again, with the same key, does nothing and says so; with another payload it is
        refused. So is what the state of a machine does not take. Who may not emit may say what a machine asks them for: with
        `machine` and `entity`.
        """
        may_emit, asks = self.policy.may_emit(request.user), any(known.asked_in for known in registry)
        if not may_emit and not asks:
            raise PermissionDenied
        body = EventBody(data=request.data)
        if not may_emit and not body.is_valid():
            raise PermissionDenied  # Who may say nothing is told nothing.
        body.is_valid(raise_exception=True)
        given = body.validated_data
        if not may_emit and not self._is_asked(given):
            raise PermissionDenied
        ref = None if given.get("entity") is None else EntityRef(**given["entity"])
        using = self.get_using(ScheduledTask if ref is None else self._model(ref.label))
        # Of whom it is about, the answer has no more than the request; so who may emit may have it again as it was.
        return answer_once(request, partial(self._emit, given, ref, using), lambda said, _again: said, using=using)

    def _is_asked(self, given: dict[str, Any]) -> bool:
        """
        Whether the machine that is named asks the user for this event, of a run that is open. Absent, foreign and ended alike
        are no, and are told by the same statements.
        """
        definition = next((known for known in registry.machines(given["name"]) if known.name == given["machine"]), None)
        about = given.get("entity") or {}
        if definition is None or not definition.label or about.get("label") != definition.label:
            return False
        if given.get("occurred_at") is not None:  # That it came earlier is not theirs to say.
            return False
        ref, using = EntityRef(**about), self.get_using(self._model(definition.label))
        run = (
            TimelineRun.objects.using(using)
            .open()
            .for_entity(ref)
            .filter(timeline=definition.name)
            .order_by("pk")
            .first()
        )
        nobody = TimelineRun(timeline=definition.name, entity_label=ref.label, entity_id=ref.id)
        may = self.policy.may_ask(self.request.user, run or nobody, given["name"], using=using)
        return may and run is not None

    def _emit(self, given: dict[str, Any], ref: EntityRef | None, using: str) -> Outcome:
        """
        Emit, and tell what that did.

        Raises:
            WrongEntity: if there is none of this name.
        """
        entity = None if ref is None else find_entity(ref, using=using)
        if entity is None and ref is not None:
            problem = _("there is no %(label)s %(id)r.")
            raise WrongEntity(problem, _("Give one that is there."), label=ref.label, id=ref.id)
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
        return Outcome(self.serializer_class(emission, context={"view": self, "request": self.request}).data, code)

    def _model(self, label: str) -> type[Model]:
        """
        Find what kind of entity an event is about, among what timelines are about: whoever emits learns of no other rows.

        Raises:
            WrongEntity: if it is none of these.
        """
        model = model_of(label)
        if model is None or not any(registry.knows(label_of(kind)) for kind in (*family_of(model), *relatives(label))):
            problem, remedy = _("no timeline is about %(label)r."), _("Give the label of a model that one is about.")
            raise WrongEntity(problem, remedy, label=label)
        return model
