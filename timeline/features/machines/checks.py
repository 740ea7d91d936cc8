"""Check of the moves of machines that the database passes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

from django.apps import AppConfig
from django.core.checks import CheckMessage, Warning

from timeline.features.machines.edges import missing_edges

MOST_NAMED: Final = 5


def check_edges(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_extra: Any
) -> list[CheckMessage]:
    """
    ``timeline.W013``: moves of a table that the database does not know. ``migrate`` writes them, so it has nothing to say.
    """
    if sys.argv[1:2] == ["migrate"]:
        return []
    return [
        Warning(
            f"The database {alias!r} does not know these moves of the machine {name} yet: {_named(pairs)}.",
            hint="A worker or poller that starts with this code writes them, and so does manage.py migrate.",
            id="timeline.W013",
        )
        for alias in databases or ()
        for name, pairs in sorted(missing_edges(alias).items())
    ]


def _named(pairs: Sequence[tuple[str, str]]) -> str:
    first = ", ".join(f"{source} → {target}" for source, target in pairs[:MOST_NAMED])
    return f"{first} and {len(pairs) - MOST_NAMED} more" if len(pairs) > MOST_NAMED else first


CHECKS: Final = (check_edges,)
