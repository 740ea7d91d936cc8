"""Events: said by other systems, as ``emit`` says them."""

from __future__ import annotations

from django.db.models import Model
from django.utils.translation import gettext_lazy as _
from rest_framework import status
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from timeline import shortcuts
from timeline.api.base import TimelineAPI
from timeline.api.finding import find_entity
from timeline.api.requests import EventBody
from timeline.api.schema import answers, described
from timeline.api.serializers import EmissionSerializer
from timeline.exceptions import WrongEntity
from timeline.models import EntityRef, ScheduledTask, family_of, model_of
from timeline.registry import registry


class Events(TimelineAPI):
    """Events that those who may emit."""

    serializer_class: type[EmissionSerializer] = EmissionSerializer

    @described(
        operation_id="emit",
        request=EventBody,
        responses=answers(409, 413, 415, ok=EmissionSerializer, created=EmissionSerializer),
    )
    def post(self, request: Request) -> Response:
        """
        Record what happened. The same again, with the same key, does nothing and says so; with another payload it is
        refused.
        """
        if not self.policy.may_emit(request.user):
            raise PermissionDenied
        body = EventBody(data=request.data)
        body.is_valid(raise_exception=True)
        given = body.validated_data
        entity = self._entity(given.get("entity"))
        emission = shortcuts.emit(
            given["name"],
            entity,
            key=given["key"],
            payload=given["payload"],
            actor=self.actor,
            occurred_at=given.get("occurred_at"),
            using=self.get_using(ScheduledTask if entity is None else entity.__class__),
        )
        code = status.HTTP_201_CREATED if emission.recorded else status.HTTP_200_OK
        return Response(self.serializer_class(emission, context={"view": self, "request": request}).data, code)

    def _entity(self, given: dict[str, str] | None) -> Model | None:
        """
        Find what an event is about, among what timelines are about: whoever emits learns of no other rows.

        Raises:
            WrongEntity: if it is none of these.
        """
        if given is None:
            return None
        ref = EntityRef(given["label"], given["id"])
        model = model_of(ref.label)
        if model is None or not any(registry.knows(kind._meta.label_lower) for kind in family_of(model)):
            problem, remedy = _("no timeline is about %(label)r."), _("Give the label of a model that one is about.")
            raise WrongEntity(problem, remedy, label=ref.label)
        entity = find_entity(ref, using=self.get_using(model))
        if entity is None:
            problem = _("there is no %(label)s %(id)r.")
            raise WrongEntity(problem, _("Give one that is there."), label=ref.label, id=ref.id)
        return entity
