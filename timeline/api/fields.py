"""Values as they come and go: instants with their zone, text that is text, bodies with no field too many."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db.models import Model
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from timeline.models import EntityRef, exact_ref, model_of
from timeline.registry import registry
from timeline.timing import EARLIEST, LATEST


def read_instant(text: str) -> datetime | None:
    """Read an ISO 8601 moment with its offset from UTC; None if it is no such thing."""
    try:
        moment = parse_datetime(text.upper()) if "T" in text.upper() else None
    except ValueError:
        return None
    return moment if moment is not None and moment.utcoffset() is not None else None


def nearest(moment: datetime) -> datetime:
    """The nearest moment that a row may have: what lies beyond is all the same to a comparison."""
    if not 1 < moment.year < 9999:  # Where an offset could lead out of what Python's dates hold.
        return EARLIEST if moment.year == 1 else LATEST
    return min(max(moment.astimezone(UTC), EARLIEST), LATEST)


class InstantField(serializers.DateTimeField):
    """An aware moment; shown in UTC."""

    default_error_messages = {"instant": gettext_lazy("Give a moment with its offset, as in 2026-03-01T09:00:00Z.")}

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"default_timezone": UTC, **options})

    def to_internal_value(self, value: Any) -> datetime:
        moment = read_instant(value) if isinstance(value, str) else None
        if moment is None:
            self.fail("instant")
        return moment


class BoundField(InstantField):
    """An aware moment that is compared with: any that can be told."""

    def to_internal_value(self, value: Any) -> datetime:
        return nearest(super().to_internal_value(value))


class TextField(serializers.CharField):
    """Text: a number is none. Blanks around it go."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class WholeField(serializers.IntegerField):
    """A whole number: text is none, nor is true; 2.0 is one, as JSON Schema has it."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, float) and data.is_integer():
            data = int(data)
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return super().to_internal_value(data)


class ChoiceOf(serializers.ChoiceField):
    """One of an enumeration."""

    def __init__(self, kind: type[Enum], **options: Any) -> None:
        self.kind = kind
        super().__init__([choice.value for choice in kind], **options)


@extend_schema_field({"type": "object", "additionalProperties": {}})
class ObjectField(serializers.JSONField):
    """A JSON object."""

    default_error_messages = {"object": gettext_lazy("Give an object.")}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("object")
        return data


@extend_schema_field(str)
class TitleField(serializers.ReadOnlyField):
    """What people call a task, in the language of the request."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"source": "task_key", **options})

    def to_representation(self, value: str) -> str:
        return registry.told(value)[0]


@extend_schema_field({})
class AnyField(serializers.JSONField):
    """Any JSON."""


class StrictSerializer(serializers.Serializer[Any]):
    """A body that has no other fields than these, and so many of them at least."""

    least: ClassVar[int] = 0

    @classmethod
    def read(cls, request: Request, *, partial: bool = False) -> dict[str, Any]:
        """What a request sends; ``ValidationError`` for what is wrong with it."""
        body = cls(data=request.data, partial=partial)
        body.is_valid(raise_exception=True)
        return dict(body.validated_data)

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and (unknown := sorted(data.keys() - self.fields.keys())):
            problem = _("Unknown field. Known: %(names)s.") % {"names": ", ".join(self.fields)}
            raise serializers.ValidationError({name: [problem] for name in unknown})
        return super().to_internal_value(data)


def find_entity(ref: EntityRef, *, using: str) -> Model | None:
    """Read an entity named exactly as rows name it; None if there is none."""
    model = model_of(ref.label)
    if model is None or exact_ref(*ref) is None:
        return None
    return model._base_manager.using(using).filter(pk=ref.id).first()


def can_be_key(model: type[Model], key: str) -> bool:
    """Whether an entity could have this key: a number may be larger than its column holds."""
    field = model._meta.pk
    try:
        field.run_validators(field.to_python(key))
    except ValidationError:
        return False
    return True


class EntitySerializer(serializers.Serializer[Any]):
    """What a row is about."""

    label = serializers.CharField(read_only=True)  # type: ignore[assignment]
    id = serializers.CharField(read_only=True)


@extend_schema_field(EntitySerializer(allow_null=True))
class EntityField(serializers.ReadOnlyField):
    """What a row is about; None: no entity."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"source": "entity_ref", **options})

    def to_representation(self, value: EntityRef) -> dict[str, str] | None:
        return value._asdict() if value.label else None
