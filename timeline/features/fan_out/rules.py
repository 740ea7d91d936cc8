"""What fan-out adds to declarations: ``self.fan_out(…)``, and how rows that were fanned out count in a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.features.fan_out.declaration import payloads_of, task_of
from timeline.features.fan_out.planner import keep_occurrences
from timeline.hooks import Rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from timeline.definition import Task, Timeline


def _fan_out(
    context: Timeline,
    task: Callable[..., Any] | Task[Any, ..., Any],
    occurrences: Mapping[str, dict[str, Any]] | Iterable[str],
) -> None:
    declared, payloads = task_of(context.definition, task), payloads_of(occurrences)
    if context._fan_out is not None:
        context._fan_out.want(declared, payloads)


RULES = Rules(verbs=(("fan_out", _fan_out),), occurrences=(keep_occurrences,))
