"""Dead letters: in groups of tasks that failed alike, and a group run again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from timeline.api.base import TimelineAPI
from timeline.api.fields import InstantField, TitleField
from timeline.api.filters import refuse_unknown_names
from timeline.api.preconditions import RequestOutcome, answer_once
from timeline.api.requests import RedriveBody
from timeline.api.schema import REPEATABLE, answers, described
from timeline.lifecycle import Reason
from timeline.models import ScheduledTask
from timeline.operations.redrive import redrive_those
from timeline.policy import Action
from timeline.reading.dead_letters import DeadLetters, dead_letters
from timeline.reading.masks import masked, without_people

AT_A_TIME: Final = 500  # Tasks that a request runs again: it is answered within seconds.


class DeadLettersSerializer(serializers.Serializer[Any]):
    """A group of tasks that were discarded, failed alike, and were not redriven since."""

    group = serializers.CharField(read_only=True, help_text="Its fingerprint.")
    task = serializers.CharField(source="task_key", read_only=True, help_text="Key of all of them.")
    title = TitleField(help_text="What people call them; empty: they have no title.")
    count = serializers.IntegerField(read_only=True)
    first_at = InstantField(read_only=True, help_text="When the first of them was discarded.")
    last_at = InstantField(read_only=True)
    sample = serializers.UUIDField(source="sample.pk", read_only=True, help_text="The task that was made last.")
    message = serializers.CharField(read_only=True, help_text="Its error; empty where you may not read it.")


class LeftSerializer(serializers.Serializer[Any]):
    """A task that cannot be redriven."""

    task = serializers.UUIDField(read_only=True)
    why = serializers.CharField(read_only=True)


class RedrivenSerializer(serializers.Serializer[Any]):
    """What a request ran again."""

    redriven = serializers.IntegerField(read_only=True, help_text="How many tasks run again.")
    left = LeftSerializer(many=True, read_only=True, help_text="Those that cannot.")
    next = serializers.UUIDField(
        read_only=True,
        allow_null=True,
        help_text="There is more: send the same with this as `after`. Null: that was all.",
    )


class DeadLetterGroups(TimelineAPI):
    parameters = ("group",)
    serializer_class: type[DeadLettersSerializer] = DeadLettersSerializer

    @described(
        operation_id="dead_letters",
        parameters=[OpenApiParameter("group", {"type": "string", "minLength": 1}, description="Just this one.")],
        responses=answers(ok=DeadLettersSerializer(many=True)),
    )
    def get(self, request: Request) -> Response:
        """List groups, the last discarded first; 200 at most."""
        group = request.query_params.get("group", "")
        refuse_unknown_names({"group": group}, self.get_queryset())
        found = dead_letters(self.get_queryset(), group)
        return Response(self.serializer_class([self._shown(each) for each in found], many=True).data)

    def _shown(self, each: DeadLetters) -> DeadLetters:
        user, sample = self.request.user, each.sample
        shown = sample if self.policy.sees_payload(user) else masked(sample)
        return replace(each, sample=shown if self.policy.sees_decisions(user, sample) else without_people(shown))


class RedriveGroup(TimelineAPI):
    @described(
        operation_id="redrive_dead_letters",
        request=RedriveBody,
        parameters=REPEATABLE,
        responses=answers(404, 409, 413, 415, 422, ok=RedrivenSerializer),
    )
    def post(self, request: Request, group: str) -> Response:
        """
        Run the dead letters of a group again, 500 at a time: as long as `next` is given, there are more. Those that you may
        not redrive are passed over.
        """
        # Also one that was redriven by now: perhaps by this request, which is sent again.
        if "\x00" in group or not self.get_queryset().failed_alike(group).exists():
            raise NotFound(_("There is no such group."))
        if not self.policy.allows(request.user, Action.REDRIVE):
            raise PermissionDenied
        act = partial(self._redrive, group, RedriveBody.read(request))
        return answer_once(request, act, using=self.get_using())

    def _redrive(self, group: str, given: dict[str, Any]) -> RequestOutcome:
        dead = self.get_queryset().dead_letters(group).order_by("pk")
        after, seconds = given.get("after"), given.get("spread_seconds")
        tasks = list((dead.filter(pk__gt=after) if after else dead)[: AT_A_TIME + 1])
        chosen = tasks[:AT_A_TIME]
        done = redrive_those(
            [task.pk for task in chosen if self._may(task)],
            reason=Reason.operator(given["reason"], self.actor),
            spread=timedelta(seconds=seconds) if seconds else None,
            now=self.now,
            using=self.get_using(),
        )
        said = {
            "redriven": done.redriven,
            "left": [{"task": task_id, "why": why} for task_id, why in done.left.items()],
            "next": chosen[-1].pk if len(tasks) > len(chosen) else None,
        }
        return RequestOutcome(RedrivenSerializer(said).data)

    def _may(self, task: ScheduledTask) -> bool:
        return Action.REDRIVE in self.policy.actions(self.request.user, task)
