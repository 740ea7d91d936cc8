"""What fan-out adds to declarations: ``self.fan_out(…)``, which tasks may fan out, and how such rows count in a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.features.fan_out.declaration import payloads_of, task_of
from timeline.features.fan_out.planner import keep_occurrences
from timeline.hooks import Rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from timeline.definition import Definition, Task, Timeline
    from timeline.hooks import Problem


def _fan_out(
    context: Timeline,
    task: Callable[..., Any] | Task[Any, ..., Any],
    occurrences: Mapping[str, dict[str, Any]] | Iterable[str],
) -> None:
    declared, payloads = task_of(context.definition, task), payloads_of(occurrences)
    if context._fan_out is not None:
        context._fan_out.want(declared, payloads)


def _problems(definition: Definition, declared: Task[Any, ..., Any]) -> Iterator[Problem]:
    when = declared.when
    fans_out = definition.tasks.get(when.predecessor_name) if when is not None and when.is_for_each else None
    if fans_out is None:
        return
    if fans_out.options.bulk is not None:
        yield (
            f"is fanned out by {fans_out.name!r}, which takes many entities in one call.",
            f"Declare {fans_out.name!r} without bulk.",
        )
    if fans_out.is_repeated:
        yield f"is fanned out by {fans_out.name!r}, which is repeated.", "Let a task that comes once fan out."
    if fans_out.when is not None and fans_out.when.is_for_each:
        yield (
            f"is fanned out by {fans_out.name!r}, which is fanned out itself.",
            f"Let {fans_out.when.predecessor_name!r} fan out both.",
        )


RULES = Rules(of_task=(_problems,), verbs=(("fan_out", _fan_out),), occurrences=(keep_occurrences,))
