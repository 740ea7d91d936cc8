"""What there is to judge: rows, their log, effects, and what processes and people wrote down meanwhile."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

FINAL = frozenset({"completed", "discarded", "cancelled"})


class Task(NamedTuple):
    """A row of ``timeline_scheduledtask``; times in seconds since 1970."""

    id: str
    run_id: str | None
    task_key: str
    occurrence: str
    revision: int
    previous_id: str | None
    entity_label: str
    entity_id: str
    state: str
    seq: int
    attempt: int
    scheduled_at: float
    finished_at: float | None
    reason_code: str

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.state not in FINAL


class Entry(NamedTuple):
    """A row of ``timeline_logentry``."""

    task_id: str
    seq: int
    at: float
    from_state: str
    to_state: str
    attempt: int
    reason_code: str
    detail: dict[str, Any]


class Run(NamedTuple):
    """A row of ``timeline_timelinerun``; of a machine with its state, and how often it has moved."""

    id: str
    timeline: str
    entity_id: str
    ended_at: float | None
    end_reason: str
    state: str = ""
    back: str = ""
    moves: int = 0


class Move(NamedTuple):
    """A row of ``timeline_runentry``."""

    run_id: str
    seq: int
    from_state: str
    to_state: str
    back: str
    event: str
    cause_id: str | None


class Event(NamedTuple):
    """A row of ``timeline_event``."""

    id: str
    name: str
    entity_id: str
    key: str


class Effect(NamedTuple):
    """A row that an atomic handler wrote: in its transaction."""

    task_id: str
    attempt: int


class Entered(NamedTuple):
    """A handler was entered, as it wrote outside of any transaction; ``left_at`` None: it never said that it was through."""

    task_id: str
    attempt: int
    kind: str
    key: str
    group: int
    at: float
    left_at: float | None
    how: str
    seen: tuple[str, int] | None


class Trouble(NamedTuple):
    """What was done to a group of processes (0: to all of them), from when until when."""

    kind: str
    group: int
    since: float
    until: float

    def touches(self, group: int, since: float, until: float) -> bool:
        """Whether this group had it in this time."""
        return self.group in (0, group) and self.since <= until and self.until >= since


class Asked(NamedTuple):
    """What somebody asked of the package; ``done_at`` None: the answer did not come back, so that it may be so or not."""

    verb: str
    task_ids: tuple[str, ...]
    entity_id: str
    due_at: float | None
    asked_at: float
    done_at: float | None


class Message(NamedTuple):
    """What was sent to a broker."""

    task_ids: tuple[str, ...]
    token: str


@dataclass(frozen=True)
class History:
    """
    All of it.

    Args:
        read_at: When the rows were read, by the database's clock.
        follow_ups: Task key → keys of what follows its completion.
        roots: Timeline → keys of what each of its runs begins with.
        limits: Task key → how many of it may be under way at once, and until when one of them is.
        machines: Name of a machine → state → event → what state it leads to, ``BACK`` or ``STAY``.
    """

    read_at: float
    tasks: dict[str, Task]
    entries: list[Entry]
    runs: dict[str, Run]
    effects: list[Effect]
    entered: list[Entered] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    follow_ups: dict[str, list[str]] = field(default_factory=dict)
    roots: dict[str, list[str]] = field(default_factory=dict)
    limits: dict[str, tuple[int, str]] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)
    events: dict[str, Event] = field(default_factory=dict)
    machines: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)

    @cached_property
    def logs(self) -> dict[str, list[Entry]]:
        """Entries of each task, in order."""
        logs: dict[str, list[Entry]] = defaultdict(list)
        for entry in sorted(self.entries, key=lambda entry: entry.seq):
            logs[entry.task_id].append(entry)
        return logs

    @cached_property
    def entered_of(self) -> dict[str, list[Entered]]:
        """Entries into the handler of each task, in order of time."""
        entered: dict[str, list[Entered]] = defaultdict(list)
        for one in sorted(self.entered, key=lambda one: one.at):
            entered[one.task_id].append(one)
        return entered

    def end_of(self, task_id: str, attempt: int) -> Entry | None:
        """How an attempt ended, as the log says."""
        ends = (entry for entry in self.logs[task_id] if entry.from_state == "active" and entry.to_state != "active")
        return next((entry for entry in ends if entry.attempt == attempt), None)

    def is_troubled(self, group: int, since: float, until: float) -> bool:
        """Whether anything was done to this group of processes in this time."""
        return any(trouble.touches(group, since, until) for trouble in self.troubles)


class Violation(NamedTuple):
    """
    What should not be.

    Args:
        rule: Name of the rule that it breaks.
        subject: The task or run it is about.
        text: In plain words.
    """

    rule: str
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}: {self.text}"
