"""What sleep adds to declarations: ``self.sleep(…)``, and where a handler must not call it."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from timeline.features.sleep.declaration import Asleep, sleep_of
from timeline.hooks import Rules

if TYPE_CHECKING:
    from datetime import timedelta

    from timeline.definition import Task, Timeline
    from timeline.definition.check_timelines import Problem
    from timeline.definition.definitions import Definition

_WORD: Final = "sleep"


def _sleep(context: Timeline, delta: timedelta, /, **given: Any) -> Any:
    asked, sleeper = sleep_of(delta, **given), context._part("sleeper")
    return Asleep() if sleeper is None else sleeper.sleep(asked)


def _task_problems(_definition: Definition, task: Task[Any, ..., Any]) -> Iterator[Problem]:
    if task.options.atomic and _sleeps(task.method):
        yield (
            "sleeps, and is atomic: what it has written before would be kept, or done again, half-way.",
            "Give atomic=False, and put what it writes into steps.",
        )
    elif task.options.bulk is not None and _sleeps(task.method):
        yield "sleeps, and takes many entities in one call.", "Take bulk out, or give it a follow-up: after(…, days=2)."


def _step_problems(definition: Definition) -> Iterator[tuple[str, Problem]]:
    for name, step in definition.steps.items():
        if _sleeps(step.method):
            yield name, ("sleeps in a step.", "Sleep in the handler, between the steps.")


def _sleeps(method: object) -> bool:
    """Whether the code of a method calls ``self.sleep``; what it calls elsewhere is seen when it runs."""
    code = getattr(method, "__code__", None)
    if code is None or _WORD not in code.co_names or not code.co_varnames:
        return False
    before: dis.Instruction | None = None
    for each in dis.get_instructions(code):
        of_self = before is not None and before.opname.startswith("LOAD_FAST") and before.argval == code.co_varnames[0]
        if of_self and each.argval == _WORD and each.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            return True
        before = each
    return False


RULES = Rules(verbs=((_WORD, _sleep),), of_task=(_task_problems,), of_parts=(_step_problems,))
