"""Bodies of requests."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from timeline.api.fields import ChoiceOf, InstantField, StrictSerializer, TextField
from timeline.exceptions import DateOutOfRange
from timeline.timing import check_time
from timeline.webhooks.models import MAX_URL, Ordered
from timeline.webhooks.topics import MAX_TOPICS


@extend_schema_field({"type": "boolean"})
class YesNoField(serializers.BooleanField):
    """True or false: text is neither."""

    def to_internal_value(self, data: Any) -> bool:
        """Take these two only."""
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class MomentField(InstantField):
    """A moment that rows can have."""

    def to_internal_value(self, value: Any) -> Any:
        """See that it is within the years."""
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
        """See that there is a time between the two."""
        until = attrs.get("until")
        if until is not None and attrs["since"] >= until:
            raise serializers.ValidationError({"until": _("Give a later time.")})
        return attrs
