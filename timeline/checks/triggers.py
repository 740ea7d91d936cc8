"""Checks of the triggers that guard the rows, and of the functions that statements call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error

from timeline.store.triggers import missing_triggers


def check_triggers(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_extra: Any
) -> list[CheckMessage]:
    """``timeline.E004``: a trigger that guards the rows is missing, or a function that statements call."""
    return [
        Error(
            f"The trigger or function {name} is missing in the database {alias!r}.",
            hint=f"Run manage.py migrate --database {alias} --skip-checks, which puts it back.",
            id="timeline.E004",
        )
        for alias in databases or ()
        for name in missing_triggers(alias)
    ]
