"""Checks of rates: tasks that share a key have the same rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error

from timeline.features.rates.declaration import Rate, rate_of
from timeline.registry import registry


def check_rates(app_configs: Sequence[AppConfig] | None, **_extra: Any) -> list[CheckMessage]:
    """``timeline.E007``: tasks share the key of a rate, and have different rates: each would count in its own way."""
    first: dict[tuple[str, bool], tuple[str, Rate]] = {}
    found: list[CheckMessage] = []
    for task_key in sorted(registry.task_keys()):
        rate = rate_of(registry.task(task_key)[1])
        if rate is None or not rate.key:
            continue
        other, known = first.setdefault((rate.key, bool(rate.by)), (task_key, rate))
        if known.read != rate.read:
            both = f"{known.text!r} for one, {rate.text!r} for the other."
            message = f"{other} and {task_key} share the rate {rate.key!r}: {both}"
            hint = "Give both the same rate, or keys of their own."
            found.append(Error(message, hint=hint, id="timeline.E007"))
    return found


CHECKS: Final = (check_rates,)
