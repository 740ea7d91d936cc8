"""``expect(user)``: assertions on an entity's timeline that read as sentences and fail with a picture of it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Self

from django.db import DEFAULT_DB_ALIAS

from timeline.clocks import story_now
from timeline.lifecycle import OPEN, State
from timeline.models import EntityRef, ScheduledTask, ref_of
from timeline.models.entities import kinds_of
from timeline.reading.outlook import foreseen
from timeline.reading.text_pictures import picture
from timeline.registry import registry
from timeline.suggestions import did_you_mean
from timeline.testing.present import running_clocks
from timeline.timing import check_time

if TYPE_CHECKING:
    from django.db.models import Model

    from timeline.definition import Definition


class Expectation:
    """
    Assertions on one entity's tasks; each returns the expectation, so that they chain.

    Task keys may be shortened to the method's name; a key that no timeline about such entities has is refused
    (``LookupError``). Where a count is not asked for, at least one task must be as said.

    Args:
        entity: Whose timeline; None: the system's.
        using: Database alias of the entity.
    """

    def __init__(self, entity: Model | EntityRef | None, using: str) -> None:
        self.ref = ref_of(entity)
        self.using = using

    def scheduled(self, task: str, *, at: datetime | None = None) -> Self:
        """The task waits for its time."""
        return self._has(task, {State.SCHEDULED}, at=at)

    def open(self, *tasks: str) -> Self:
        """Just these tasks are open, in any order; none given: nothing is open."""
        return self._just(tasks, [task.task_key for task in self._tasks() if task.state in OPEN], "open")

    def retryable(self, task: str, *, at: datetime | None = None) -> Self:
        """The task has failed and is to be tried again."""
        return self._has(task, {State.RETRYABLE}, at=at)

    def completed(self, task: str, *, times: int | None = None, reason: str | None = None) -> Self:
        """
        The task was completed, just so many times if ``times`` is given (0: never).

        ``reason`` is its code: ``done``, or ``shadow`` where the handler was not entered.
        """
        return self._has(task, {State.COMPLETED}, times=times, reason=reason)

    def discarded(self, task: str, *, reason: str | None = None) -> Self:
        """The task was given up."""
        return self._has(task, {State.DISCARDED}, reason=reason)

    def cancelled(self, task: str, *, reason: str | None = None) -> Self:
        """The task was cancelled; ``reason`` is its code (``guard``) or its text (``paid``)."""
        return self._has(task, {State.CANCELLED}, reason=reason)

    def never(self, task: str) -> Self:
        """No such task was ever written."""
        self._check_known(task)
        found = [row for row in self._tasks() if self._is(row.task_key, task)]
        return self._assert(not found, f"expected no task {task}")

    def foreseen(self, *tasks: str) -> Self:
        """Just these follow-ups have no row yet but may come; none given: nothing is foreseen."""
        outlooks = foreseen(entity=self.ref, now=story_now(self.using), using=self.using)
        return self._just(tasks, [item.task_key for item in outlooks], "foreseen")

    def rows(self, *rows: tuple[str, str] | tuple[str, str, str]) -> Self:
        """Just these rows, in order of their time: (task, state) or (task, state, reason's code or text)."""
        self._check_known(*(row[0] for row in rows))
        tasks = self._tasks()
        alike = len(tasks) == len(rows) and all(
            self._is(task.task_key, row[0])
            and task.state == row[1]
            and self._for(task, row[2] if len(row) > 2 else None)
            for task, row in zip(tasks, rows, strict=True)
        )
        return self._assert(alike, "expected just these rows: " + "; ".join(" ".join(row) for row in rows))

    def _has(
        self,
        name: str,
        states: set[State],
        *,
        at: datetime | None = None,
        reason: str | None = None,
        times: int | None = None,
    ) -> Self:
        self._check_known(name)
        at = at and check_time("at", at)
        found = [
            task
            for task in self._tasks()
            if self._is(task.task_key, name)
            and task.state in states
            and (at is None or task.scheduled_at == at)
            and self._for(task, reason)
        ]
        wanted = [f"expected {name} {'/'.join(sorted(states))}"]
        wanted += [f"at {at:%Y-%m-%d %H:%M:%S %Z}"] if at is not None else []
        wanted += [f"because of {reason!r}"] if reason is not None else []
        wanted += [f"{times} times"] if times is not None else []
        return self._assert(len(found) == times if times is not None else bool(found), " ".join(wanted))

    def _just(self, wanted: Iterable[str], found: list[str], what: str) -> Self:
        wanted, left = list(wanted), list(found)
        self._check_known(*wanted)
        for name in wanted:
            match = next((key for key in left if self._is(key, name)), None)
            if match is None:
                self._assert(False, f"expected {name} to be {what}")
            else:
                left.remove(match)
        return self._assert(
            not left, f"expected only {', '.join(wanted) or 'nothing'} to be {what}, found {', '.join(left)} too"
        )

    def _tasks(self) -> list[ScheduledTask]:
        return list(ScheduledTask.objects.using(self.using).for_entity(self.ref).in_order())

    def _check_known(self, *names: str) -> None:
        """``LookupError`` for a misspelt task: that there is none of it would always be true."""
        known = self._keys(registry.everywhere())
        unknown = [name for name in names if not any(self._is(key, name) for key in known)]
        if not unknown:
            return
        rows = self._tasks()
        for name in unknown:
            if not any(self._is(row.task_key, name) for row in rows):
                remedy = did_you_mean(name, known) or f"Known: {', '.join(self._keys(registry)) or 'none'}."
                raise LookupError(f"No timeline about {self.ref.label or 'the system'} has the task {name!r}. {remedy}")

    def _keys(self, definitions: Iterable[Definition]) -> list[str]:
        """Keys of tasks about such entities, sorted."""
        labels = kinds_of(self.ref.label) if self.ref.label else {""}
        alike = [known for known in definitions if known.label in labels]
        return sorted(known.task_key(name) for known in alike for name in known.tasks)

    def _is(self, task_key: str, name: str) -> bool:
        return name in (task_key, task_key.partition(".")[2])

    def _for(self, task: ScheduledTask, reason: str | None) -> bool:
        return reason is None or reason in (task.reason_code, task.reason)

    def _assert(self, is_true: bool, wanted: str) -> Self:
        if not is_true:
            shown = picture(self.ref, now=story_now(self.using), using=self.using)
            left_out = [line for clock in running_clocks() for line in clock.told_left_out()]
            raise AssertionError("\n".join([f"{wanted}, but this is the timeline:\n\n{shown}\n", *left_out]))
        return self


def expect(entity: Model | EntityRef | None, *, using: str = DEFAULT_DB_ALIAS) -> Expectation:
    """
    Begin a sentence about an entity's timeline.

    Example: ``expect(user).completed("trial.remind").scheduled("trial.expire").foreseen("trial.check_script_usage")``.
    """
    return Expectation(entity, using)
