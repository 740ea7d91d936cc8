"""What is answered. The columns with secrets are in no list here."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from timeline.api.fields import ChoiceOf, InstantField
from timeline.api.machines import EntitySerializer
from timeline.webhooks.models import Delivery, Disabled, Ordered, State


class EndpointSerializer(serializers.Serializer[Any]):
    """One endpoint."""

    id = serializers.UUIDField(read_only=True)
    url = serializers.CharField(read_only=True)
    description = serializers.CharField(read_only=True)
    topics = serializers.ListField(child=serializers.CharField(), read_only=True, help_text="What it is told.")
    ordered = ChoiceOf(Ordered, read_only=True, help_text="What is sent one after the other.")
    created_at = InstantField(read_only=True)
    rotated_at = InstantField(read_only=True, allow_null=True, help_text="When it got another secret.")
    failures = serializers.IntegerField(read_only=True, help_text="Since the last delivery that arrived.")
    failing_since = InstantField(read_only=True, allow_null=True)
    disabled_at = InstantField(read_only=True, allow_null=True, help_text="Null: it is enabled.")
    disabled_code = serializers.ChoiceField(
        ["", *sorted(Disabled.values)], read_only=True, help_text="Why it is disabled; empty: it is not."
    )
    disabled_reason = serializers.CharField(read_only=True)


class EndpointWithSecretSerializer(EndpointSerializer):
    """An endpoint that has just got a secret."""

    secret = serializers.CharField(
        read_only=True,
        allow_null=True,
        help_text="Shown now and never again; null: this request was sent again. Rotate it if you have not kept it.",
    )


class EndpointPageSerializer(serializers.Serializer[Any]):
    """A page of endpoints."""

    next = serializers.URLField(read_only=True, allow_null=True, help_text="The next page; null: this is the last.")
    results = EndpointSerializer(many=True, read_only=True)


class SampleSerializer(serializers.Serializer[Any]):
    """What a receiver answered to a sample."""

    status = serializers.IntegerField(read_only=True, allow_null=True, help_text="Null: there was no answer.")
    duration_ms = serializers.IntegerField(read_only=True)
    error = serializers.CharField(read_only=True, help_text="Empty: it arrived.")
    answer = serializers.CharField(source="text", read_only=True, help_text="Its first 2 KiB.")


class ReplayedSerializer(serializers.Serializer[Any]):
    """What is sent again."""

    count = serializers.IntegerField(read_only=True, help_text="Deliveries that are sent again, or would be.")
    dry_run = serializers.BooleanField(read_only=True, help_text="Whether they were only counted.")


class DeliverySerializer(serializers.Serializer[Any]):
    """One delivery, without its body."""

    id = serializers.IntegerField(read_only=True)
    endpoint = serializers.UUIDField(source="endpoint_id", read_only=True)
    message_id = serializers.CharField(read_only=True, help_text="`webhook-id`, the same at each try.")
    topic = serializers.CharField(read_only=True)
    entity = serializers.SerializerMethodField(help_text="Whom it is about.")
    state = serializers.ChoiceField(sorted(State.values), read_only=True)
    code = serializers.CharField(read_only=True, help_text="Why it was cancelled or given up; empty otherwise.")
    attempts = serializers.IntegerField(read_only=True)
    status = serializers.IntegerField(read_only=True, allow_null=True, help_text="Of the last answer.")
    error = serializers.CharField(read_only=True, help_text="Of the last try; empty: none.")
    created_at = InstantField(read_only=True)
    due_at = InstantField(read_only=True)
    ended_at = InstantField(read_only=True, allow_null=True, help_text="Null: it is still to be sent.")

    @extend_schema_field(EntitySerializer(allow_null=True))
    def get_entity(self, delivery: Delivery) -> dict[str, str] | None:
        """Label and id."""
        return {"label": delivery.entity_label, "id": delivery.entity_id} if delivery.entity_label else None


class TrySerializer(serializers.Serializer[Any]):
    """One try of a delivery."""

    number = serializers.IntegerField(read_only=True)
    at = InstantField(read_only=True)
    duration_ms = serializers.IntegerField(read_only=True)
    status = serializers.IntegerField(read_only=True, allow_null=True, help_text="Null: there was no answer.")
    error = serializers.CharField(read_only=True, help_text="Empty: it arrived.")
    answer = serializers.CharField(read_only=True, help_text="Its first 2 KiB.")


class DeliveryDetailSerializer(DeliverySerializer):
    """One delivery, with what is sent and its log."""

    body = serializers.CharField(read_only=True, help_text="What is sent: text, byte for byte.")
    tries = TrySerializer(many=True, read_only=True, help_text="In order.")


class DeliveryPageSerializer(serializers.Serializer[Any]):
    """A page of deliveries."""

    next = serializers.URLField(read_only=True, allow_null=True, help_text="The next page; null: this is the last.")
    results = DeliverySerializer(many=True, read_only=True)
