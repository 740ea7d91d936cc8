"""Acting in bulk: on all tasks that a filter means. What takes long is done by polls, and can be watched and stopped."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Count
from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import serializers, status
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from timeline.api.base import TimelineAPI
from timeline.api.fields import ChoiceOf, InstantField
from timeline.api.filters import refuse_unknown_names
from timeline.api.preconditions import RequestOutcome, answer_once, key_in
from timeline.api.requests import BulkBody, BulkVerb
from timeline.api.schema import REPEATABLE, answers, described
from timeline.api.serializers import TaskSerializer
from timeline.features.bulk_actions.poll import ACTIONS, WHY, able, begin_bulk, stop_bulk
from timeline.lifecycle import State
from timeline.models import BulkAction, BulkState
from timeline.models.bulk_action import BulkActionQuerySet
from timeline.policy import Action

SHOWN: Final = 10  # Tasks of a dry run.
_LOCATION: Final = OpenApiParameter(
    "Location", {"type": "string"}, OpenApiParameter.HEADER, response=[202], description="Where its progress is."
)


class SkippedSerializer(serializers.Serializer[Any]):
    """How many tasks stay as they are, by why."""

    changed = serializers.IntegerField(read_only=True, help_text="Their state changed meanwhile.")
    carried_on = serializers.IntegerField(read_only=True, help_text="A later revision carries on for them.")
    run_ended = serializers.IntegerField(read_only=True, help_text="Their run ended by an exit.")
    forbidden = serializers.IntegerField(read_only=True, help_text="Who asked may not do this with them.")
    refused = serializers.IntegerField(read_only=True, help_text="For another reason.")


class BulkActionSerializer(serializers.Serializer[Any]):
    """How far it is."""

    id = serializers.UUIDField(read_only=True)
    action = ChoiceOf(BulkVerb, read_only=True)
    filter = serializers.JSONField(
        source="filters",
        read_only=True,
        help_text="As it was sent; of one that was begun in the admin, perhaps with `kind`, `reason`, `q` and `ended_after`; "
        "with `group` also `ended_until`; of one for a cause, `groups` instead of `group`.",
    )
    state = ChoiceOf(BulkState, read_only=True)
    matched = serializers.IntegerField(read_only=True, help_text="How many tasks there were that it can change.")
    done = serializers.IntegerField(read_only=True, help_text="How many it has changed.")
    skipped = serializers.SerializerMethodField(help_text="How many it has left as they are.")
    at = InstantField(
        read_only=True, allow_null=True, help_text="Of a move: the new time; null: by how much, or no move."
    )
    by_days = serializers.IntegerField(read_only=True, help_text="Of a move: by so many days; 0: not by days.")
    by_seconds = serializers.IntegerField(read_only=True, help_text="Of a move: by so many seconds; 0: not by seconds.")
    reason = serializers.CharField(read_only=True)
    actor = serializers.CharField(read_only=True, help_text="Who asked.")
    created_at = InstantField(read_only=True, help_text="What came later is not meant.")
    ended_at = InstantField(read_only=True, allow_null=True, help_text="Null: it is running.")
    stopped_by = serializers.CharField(
        read_only=True, help_text="Who stopped it. Stopped and empty: who asked may not do so any more."
    )

    @extend_schema_field(SkippedSerializer)
    def get_skipped(self, bulk: BulkAction) -> dict[str, int]:
        return {why: bulk.skipped.get(why, 0) for why in WHY}


class DryRunSerializer(serializers.Serializer[Any]):
    """What it would do."""

    matched = serializers.IntegerField(read_only=True, help_text="How many tasks there are that it can change.")
    states = serializers.DictField(
        child=serializers.IntegerField(), read_only=True, help_text="How many the filter means, by their states."
    )
    sample = TaskSerializer(many=True, read_only=True, help_text="The first ten that it would look at.")


class BulkView(TimelineAPI):
    """Base: the bulk actions that the user may see."""

    serializer_class: type[BulkActionSerializer] = BulkActionSerializer

    def get_bulk_actions(self) -> BulkActionQuerySet:
        return self.policy.visible_bulk_actions(BulkAction.objects.using(self.get_using()), self.request.user)

    def told(self, bulk: BulkAction) -> Any:
        return self.serializer_class(bulk).data


class BulkActions(BulkView):
    @described(
        operation_id="bulk",
        request=BulkBody,
        parameters=[*REPEATABLE, _LOCATION],
        responses=answers(413, 415, 422, ok=DryRunSerializer, accepted=BulkActionSerializer),
    )
    def post(self, request: Request) -> Response:
        """
        Do something with all tasks that a filter means. With `dry_run`, count them; else it is begun, and done within the next
        polls, in batches. For each task it counts what you may do when its turn comes.
        """
        user = request.user
        # Once to everybody: what is asked of each action hangs on the body.
        if not any(self.policy.allows(user, action) for action in ACTIONS) or not isinstance(user, get_user_model()):
            raise PermissionDenied
        given = BulkBody.read(request)
        if not self.policy.allows(user, Action(given["action"])):
            raise PermissionDenied
        refuse_unknown_names(given["filter"], self.get_queryset(), within="filter")
        if given["dry_run"]:
            key_in(request)  # One that is none is refused here as well.
            return Response(self._counted(self._bulk(given)))
        return answer_once(request, partial(self._begin, given), using=self.get_using())

    def _bulk(self, given: dict[str, Any]) -> BulkAction:
        seconds, meant = given.get("spread_seconds"), given["filter"]
        moments = {name: meant[name].isoformat() for name in ("due_after", "due_before") if name in meant}
        if "group" in meant:
            moments["ended_until"] = self.now.isoformat()
        return BulkAction(
            action=given["action"],
            filters={**meant, **moments},
            at=given.get("at"),
            by_days=given.get("by_days") or 0,
            by_seconds=given.get("by_seconds") or 0,
            spread=timedelta(seconds=seconds) if seconds else None,
            reason=given["reason"],
            asker=str(self.request.user.pk),
            actor=self.actor,
            created_at=self.now,
        )

    def _begin(self, given: dict[str, Any]) -> RequestOutcome:
        bulk = begin_bulk(self._bulk(given), self.get_queryset(), using=self.get_using())
        headers = {"Location": self.request.build_absolute_uri(f"{bulk.pk}/")}
        return RequestOutcome(self.told(bulk), status.HTTP_202_ACCEPTED, headers)

    def _counted(self, bulk: BulkAction) -> Any:
        visible = self.get_queryset()
        found = dict(bulk.narrow(visible).order_by().values_list("state").annotate(count=Count("pk")))
        tasks = able(bulk, visible)
        shown = tasks.select_related("run").defer("payload", "result", "error").order_by("pk")[:SHOWN]
        return {
            "matched": tasks.count(),
            "states": {state.value: found[state] for state in State if state in found},
            "sample": TaskSerializer(shown, many=True, context={"view": self}).data,
        }


class OneBulkAction(BulkView):
    @described(operation_id="bulk_progress", responses=answers(404, ok=BulkActionSerializer))
    def get(self, request: Request, pk: UUID) -> Response:
        """Say how far it is."""
        return Response(self.told(self.get_bulk_actions().get(pk=pk)))


class StopBulkAction(BulkView):
    @described(
        operation_id="bulk_stop",
        request=None,
        parameters=REPEATABLE,
        responses=answers(404, 413, 415, 422, ok=BulkActionSerializer),
    )
    def post(self, request: Request, pk: UUID) -> Response:
        """Stop it. What it has done stays. One that has ended stays as it is."""
        bulk = self.get_bulk_actions().get(pk=pk)
        if not self.policy.allows(request.user, Action(bulk.action)):
            raise PermissionDenied

        def act() -> RequestOutcome:
            return RequestOutcome(self.told(stop_bulk(pk, actor=self.actor, now=self.now, using=self.get_using())))

        return answer_once(request, act, using=self.get_using())


ROUTES: Final = (
    ("tasks/bulk/", BulkActions, "bulk"),
    ("tasks/bulk/<uuid:pk>/", OneBulkAction, "bulk-detail"),
    ("tasks/bulk/<uuid:pk>/stop/", StopBulkAction, "bulk-stop"),
)
