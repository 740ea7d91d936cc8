"""Checks of open rows: each needs code that runs it, and a model it is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from django.apps import AppConfig
from django.core.checks import CheckMessage, Warning
from django.db.models import Count

from timeline.checks._tables import are_made
from timeline.models import ScheduledTask, model_of
from timeline.registry import registry

MOST_NAMED: Final = 5


def check_rows(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_extra: Any
) -> list[CheckMessage]:
    """
    Look at what is open. Warnings only: an error would stop ``migrate``, which may be what puts it right.

    ``timeline.W005``: rows of task keys that no timeline declares. ``timeline.W006``: rows about models that are not
    installed.
    """
    return [message for alias in databases or () for message in _of_database(alias)]


def _of_database(alias: str) -> list[CheckMessage]:
    known = set(registry.task_keys())
    keys: Counter[str] = Counter()
    labels: Counter[str] = Counter()
    for task_key, label, count in _open_rows(alias):
        if task_key not in known:
            keys[task_key] += count
        if label and model_of(label) is None:
            labels[label] += count
    return [*_unknown_keys(keys, alias), *_unknown_labels(labels, alias)]


def _open_rows(alias: str) -> list[tuple[str, str, int]]:
    """Count open rows of each task key and label, in one query; none before ``migrate`` has made the table."""
    if not are_made(alias, ScheduledTask):
        return []
    groups = ScheduledTask.objects.using(alias).open().order_by().values_list("task_key", "entity_label")
    return list(groups.annotate(Count("pk")))


def _unknown_keys(keys: Counter[str], alias: str) -> list[CheckMessage]:
    if not keys:
        return []
    example = min(keys)
    hint = (
        'Bring the task back (a class that was renamed keeps its keys with name = "…"), or cancel its rows: '
        f'cancel(ScheduledTask.objects.using("{alias}").open().filter(task_key="{example}"), reason="…").'
    )
    message = f"Nothing runs these open rows of the database {alias!r}, as no timeline declares their keys: "
    return [Warning(f"{message}{_named(keys)}.", hint=hint, id="timeline.W005")]


def _unknown_labels(labels: Counter[str], alias: str) -> list[CheckMessage]:
    if not labels:
        return []
    hint = f"Say what the model is called now: manage.py timeline_relabel {min(labels)} app.model --database {alias}."
    message = f"These open rows of the database {alias!r} are about models that are not installed: "
    return [Warning(f"{message}{_named(labels)}.", hint=hint, id="timeline.W006")]


def _named(counts: Counter[str]) -> str:
    """Names with their counts, those of the most rows first."""
    first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    more = f" and {len(first) - MOST_NAMED} more" if len(first) > MOST_NAMED else ""
    return ", ".join(f"{name} ({count})" for name, count in first[:MOST_NAMED]) + more
