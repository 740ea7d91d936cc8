"""A step of a task as the API gives it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from timeline.api.fields import ChoiceOf, InstantField
from timeline.features.steps.reading import StepLine
from timeline.models import StepKind


class StepSerializer(serializers.Serializer[Any]):
    """A step of a task."""

    name = serializers.CharField(
        read_only=True, help_text="With its key, `tell#ada@example.com`; `(sleep) 1`: a sleep."
    )
    kind = ChoiceOf(
        StepKind,
        read_only=True,
        help_text="`begun`: how it ended is not known. `loop`: not at its end. `wait`: it waits for events, "
        "or sleeps; `over`: it did. `note`: no step, but how far the handler is.",
    )
    task = serializers.UUIDField(source="task_id", read_only=True, help_text="The revision that took it.")
    attempt = serializers.IntegerField(read_only=True, help_text="Of that revision; 0: of a loop, no batch is done.")
    recorded_at = InstantField(read_only=True)
    seconds = serializers.FloatField(read_only=True, allow_null=True, help_text="How long it took; null: not known.")
    result = serializers.SerializerMethodField(
        help_text="What it gave, of a loop the sums so far, of a note its text; null as well where it is masked."
    )
    done = serializers.IntegerField(
        read_only=True,
        allow_null=True,
        help_text="Of a loop or a note: so many are. Of a wait that is over: 1, it came.",
    )
    total = serializers.IntegerField(read_only=True, allow_null=True, help_text="Of so many; null: nobody knows.")

    @extend_schema_field({})
    def get_result(self, step: StepLine) -> Any:
        return step.result
