"""Check of timelines that begin once: what began before they said so is not undone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.apps import AppConfig
from django.core.checks import CheckMessage, Warning
from django.db.models import Exists, F, OuterRef

from timeline.checks._tables import are_made
from timeline.models import TimelineRun
from timeline.registry import registry

MOST_NAMED: Final = 5


def check_once(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_extra: Any
) -> list[CheckMessage]:
    """``timeline.W011``: open runs of a timeline with ``once``, beside which there is another of the same entity and key."""
    names = [known.name for known in registry if known.once]
    return [message for alias in databases or () for message in _of_database(alias, names)] if names else []


def _of_database(alias: str, names: Sequence[str]) -> list[CheckMessage]:
    if not are_made(alias, TimelineRun):
        return []
    runs = TimelineRun.objects.using(alias)
    place = {name: OuterRef(name) for name in ("entity_label", "entity_id", "timeline", "key")}
    others = runs.filter(**place).exclude(pk=OuterRef("pk"))
    twice = runs.open().filter(Exists(others), timeline__in=names, once=False).order_by(F("pk").desc())
    found = [
        f"{run.timeline} of {run.entity_ref}{f', key {run.key!r}' if run.key else ''}"
        for run in twice[: MOST_NAMED + 1]
    ]
    if not found:
        return []
    more = " and more" if len(found) > MOST_NAMED else ""
    message = (
        f"These runs in the database {alias!r} began again before their timelines said once = True, and are open: "
    )
    hint = 'Nothing begins again from now on. If one of them should not go on, end it: leave("…", entity, key="…", reason="…").'
    return [Warning(f"{message}{'; '.join(found[:MOST_NAMED])}{more}.", hint=hint, id="timeline.W011")]
