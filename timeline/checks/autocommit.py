"""Check of autocommit: without it, what is written is there only once somebody commits it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error
from django.db import DEFAULT_DB_ALIAS, connections, router

from timeline.reading.diagnosing import databases


def check_autocommit(app_configs: Sequence[AppConfig] | None, **_extra: Any) -> list[CheckMessage]:
    """
    ``timeline.E005``: workers would enter handlers and lose their outcomes.

    Looks at the databases that routers give our tables to; without routers, at the default one. Workers refuse any.
    """
    ours = databases() if router.routers else [DEFAULT_DB_ALIAS]
    return [
        Error(
            f"The database {alias!r} has AUTOCOMMIT off: handlers would be entered, and their outcomes lost.",
            hint=f"Take AUTOCOMMIT out of DATABASES[{alias!r}], and open transactions with transaction.atomic().",
            id="timeline.E005",
        )
        for alias in ours
        if not connections[alias].settings_dict["AUTOCOMMIT"]
    ]
