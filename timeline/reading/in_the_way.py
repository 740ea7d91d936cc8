"""What keeps tasks from running, such as a hold. Features say it, see ``Hindrance``; each statement is for many tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from timeline.hooks import hooks
from timeline.lifecycle import State

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from timeline.models import ScheduledTask


def asks_in_the_way(*, using: str) -> list[QuerySet[Any]]:
    """What to read together with something else, for ``in_the_way``."""
    return [each.in_force(using=using) for each in hooks().hindrances]


def in_the_way(
    tasks: Iterable[ScheduledTask], found: Sequence[Sequence[Any]] | None = None, *, using: str
) -> dict[UUID, str]:
    """
    Say until when something keeps tasks that are open and not being run: id of a task → in words; others are left out.

    Args:
        found: What ``asks_in_the_way`` has found; None: a statement for each kind of thing that may be in the way.
    """
    rest = [task for task in tasks if task.is_open and task.state != State.ACTIVE]
    said: dict[UUID, list[str]] = defaultdict(list)
    for number, each in enumerate(hooks().hindrances if rest else ()):
        for task_id, words in each.words(rest, None if found is None else found[number], using=using).items():
            said[task_id].append(words)
    return {task_id: "; ".join(words) for task_id, words in said.items()}


def told_in_the_way(task: ScheduledTask, *, people: bool, using: str) -> Iterator[str]:
    """All about it, in sentences. ``people``: tell who decided, and their texts."""
    for each in hooks().hindrances if task.is_open and task.state != State.ACTIVE else ():
        yield from each.told(task, people=people, using=using)
