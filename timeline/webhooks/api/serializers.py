"""What is answered. The columns with secrets are in no list here."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from timeline.api.fields import ChoiceOf, EntitySerializer, InstantField, StrictSerializer, TextField
from timeline.exceptions import DateOutOfRange
from timeline.timing import check_time
from timeline.webhooks.facts import MAX_TOPICS
from timeline.webhooks.models import MAX_URL, Delivery, Disabled, Endpoint, Ordered, State


class EndpointSerializer(serializers.Serializer[Any]):
    """One endpoint."""

    id = serializers.UUIDField(read_only=True)
    url = serializers.SerializerMethodField(
        help_text="Its host only, for who may not change it: the rest may be a secret."
    )
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

    def get_url(self, endpoint: Endpoint) -> str:
        return endpoint.url if self.context["whole"] else endpoint.masked_url


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


@extend_schema_field({"type": "boolean"})
class YesNoField(serializers.BooleanField):
    """True or false: text is neither."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class MomentField(InstantField):
    """A moment that rows can have."""

    def to_internal_value(self, value: Any) -> Any:
        try:
            return check_time("at", super().to_internal_value(value))
        except DateOutOfRange:
            raise serializers.ValidationError(_("Give a time between the years 1970 and 9000.")) from None


class EndpointBody(StrictSerializer):
    """What of an endpoint is written by people."""

    url = TextField(max_length=MAX_URL, help_text="https, of a host that anybody could reach.")
    topics = serializers.ListField(
        child=TextField(max_length=200), min_length=1, max_length=MAX_TOPICS, help_text="What it is told."
    )
    description = TextField(max_length=200, required=False, allow_blank=True)
    ordered = ChoiceOf(Ordered, required=False, help_text="What is sent one after the other; as a rule `entity`.")


class ReplayBody(StrictSerializer):
    """Which deliveries are sent again."""

    since = MomentField(help_text="Those written from this moment on.")
    until = MomentField(required=False, allow_null=True, help_text="And before this one; null: until now.")
    arrived = YesNoField(default=False, help_text="Also those that have arrived.")
    dry_run = YesNoField(default=False, help_text="Only count them.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        until = attrs.get("until")
        if until is not None and attrs["since"] >= until:
            raise serializers.ValidationError({"until": _("Give a later time.")})
        return attrs
