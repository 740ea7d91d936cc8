"""What the inventory says of rates, and which keys are braked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from timeline.features.rates.declaration import Rate, rate_of
from timeline.models import RateKey

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.definition import Definition


def in_inventory(definitions: Iterable[Definition], *, using: str) -> dict[str, dict[str, object]]:  # noqa: ARG001 (as all are called)
    """The rates of kinds that have one, in words; nothing is read."""
    return {
        definition.task_key(name): {"rate": rate_in_words(rate)}
        for definition in definitions
        for name, declared in definition.tasks.items()
        if (rate := rate_of(declared)) is not None
    }


def rate_in_words(rate: Rate) -> str:
    """The rate of a task, and what shares it."""
    said = f"{rate.text} ({rate.key})" if rate.key else rate.text
    return _("%(rate)s for each %(field)s") % {"rate": said, "field": rate.by} if rate.by else said


def brakes(*, now: datetime, using: str) -> list[tuple[str, datetime]]:
    """Keys that are braked, with the value of a field, and until when."""
    rows = RateKey.objects.using(using).filter(braked_until__gt=now).order_by("braked_until", "key")
    return [(key, until) for key, until in rows.values_list("key", "braked_until") if until is not None]
