"""Where a machine is, and what it is about, as the API gives it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from timeline.api.fields import InstantField


class EntitySerializer(serializers.Serializer[Any]):
    """What a row is about."""

    label = serializers.CharField(read_only=True)  # type: ignore[assignment]
    id = serializers.CharField(read_only=True)


class MoveSerializer(serializers.Serializer[Any]):
    """One move of a machine, or its beginning."""

    seq = serializers.IntegerField(read_only=True, help_text="Counts moves; 0: it began.")
    at = InstantField(read_only=True)
    from_state = serializers.CharField(read_only=True, help_text="Empty where it began.")
    to_state = serializers.CharField(read_only=True)
    event = serializers.CharField(read_only=True, help_text="Its name; empty: it was begun by hand.")
    actor = serializers.CharField(read_only=True, help_text="Empty: the system, or you may not know.")
    reason = serializers.CharField(
        read_only=True,
        help_text="What the person wrote whom the machine had asked. Empty: nothing, or you may not know.",
    )


class MachineSerializer(serializers.Serializer[Any]):
    """Where the run of a machine is."""

    timeline = serializers.CharField(source="run.timeline", read_only=True)
    entity = serializers.SerializerMethodField(help_text="What it is about; null: the system.")
    run = serializers.UUIDField(source="run.pk", read_only=True)
    key = serializers.CharField(source="run.key", read_only=True, help_text="Tells runs of the same entity apart.")
    state = serializers.CharField(source="run.state", read_only=True, help_text="As the machine calls it.")
    state_at = InstantField(source="run.state_at", read_only=True, help_text="Since when.")
    ended_at = InstantField(source="run.ended_at", read_only=True, allow_null=True)
    takes = serializers.ListField(
        child=serializers.CharField(), read_only=True, help_text="Events that its state takes; none once it has ended."
    )
    asked = serializers.SerializerMethodField(help_text="Those of them that it asks you for: you may say them.")
    moves = MoveSerializer(many=True, read_only=True, help_text="The latest 50, from the first to the last.")

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_asked(self, line: Any) -> list[str]:
        """Events."""
        view = self.context["view"]
        asked: list[str] = view.policy.asked_of(view.request.user, line.run, using=line.run._state.db)
        return asked

    @extend_schema_field(EntitySerializer(allow_null=True))
    def get_entity(self, line: Any) -> dict[str, str] | None:
        """Label and id."""
        return line.run.entity_ref._asdict() if line.run.entity_label else None
