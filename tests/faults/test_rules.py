"""Each rule of the checker objects to what it is about, and to nothing else."""

from __future__ import annotations

import pytest

from tests.faults.check.history import Asked, Effect, Entered, Entry, History, Message, Run, Task, Trouble
from tests.faults.check.judging import judge

PLAN = {"follow_ups": {"course.first": ["course.then"]}, "roots": {"course": ["course.first"]}}


def task(name="a", **columns):
    """A row that completed at its first attempt."""
    given = {
        "id": name,
        "run_id": None,
        "task_key": "loose.plain",
        "occurrence": "",
        "revision": 1,
        "previous_id": None,
        "entity_label": "faults.subject",
        "entity_id": "1",
        "state": "completed",
        "seq": 2,
        "attempt": 1,
        "scheduled_at": 10.0,
        "finished_at": 12.0,
        "reason_code": "done",
    }
    return Task(**given | columns)


def log(*moves, name="a"):
    """Entries, one a second from 11 on: ``("available", "active")``, with a reason's code if there is one."""
    entries, attempt = [], 0
    for number, (before, after, *code) in enumerate(moves, 1):
        attempt += after == "active"
        entries.append(Entry(name, number, 10.0 + number, before, after, attempt, *(code or [""]), {}))
    return entries


COMPLETED = task()
DONE = log(("available", "active"), ("active", "completed", "done"))
LOST = log(
    ("available", "active"),
    ("active", "retryable", "worker_lost"),
    ("retryable", "available"),
    ("available", "active"),
    ("active", "completed", "done"),
)
TWICE = task(seq=5, attempt=2, finished_at=15.0)


def entered(attempt=1, at=11.1, left_at=11.5, **columns):
    """A handler that was entered and left."""
    given = {"task_id": "a", "kind": "plain", "key": "a", "group": 7, "how": "done", "seen": ("active", attempt)}
    return Entered(attempt=attempt, at=at, left_at=left_at, **given | columns)


def rules(tasks=(COMPLETED,), entries=DONE, runs=(), effects=(), **journals):
    """Names of the rules that object."""
    history = History(
        100.0, {one.id: one for one in tasks}, list(entries), {run.id: run for run in runs}, list(effects), **journals
    )
    return {violation.rule for violation in judge(history)}


KILLED = Trouble("killed", 7, 11.5, float("inf"))
CANCELLED = task(state="cancelled", reason_code="operator", attempt=1)
CALLED_OFF = log(("available", "active"), ("active", "cancelled", "operator"))
CANCEL = Asked("cancel", ("a",), "", None, 11.9, 12.05)
RUN = Run("r", "course", "1", 20.0, "finished")
FIRST = task("first", run_id="r", task_key="course.first")
THEN = task("then", run_id="r", task_key="course.then")
BOTH = [*log(*[(e.from_state, e.to_state, e.reason_code) for e in DONE], name="first")]
BOTH += log(*[(e.from_state, e.to_state, e.reason_code) for e in DONE], name="then")

DONE_TOO = [entry._replace(task_id="b") for entry in DONE]
ALONE = {"limits": {"loose.plain": (1, "attempt")}}

GOOD = {
    "completed": {"entered": [entered()]},
    "atomic": {"entered": [entered(kind="atomic")], "effects": [Effect("a", 1)]},
    "lost with its process, and repeated": {
        "tasks": [TWICE],
        "entries": LOST,
        "entered": [entered(left_at=None), entered(2, 14.1, 14.5)],
        "troubles": [KILLED],
    },
    "repeated after it raised": {
        "tasks": [TWICE],
        "entries": [entry._replace(reason_code=entry.reason_code.replace("worker_lost", "error")) for entry in LOST],
        "entered": [entered(how="raised"), entered(2, 14.1, 14.5)],
    },
    "rests until its time": {
        "tasks": [task(state="scheduled", seq=0, attempt=0, scheduled_at=101.0, finished_at=None, reason_code="")],
        "entries": [],
    },
    "cancelled while it ran": {
        "tasks": [CANCELLED],
        "entries": CALLED_OFF,
        "entered": [entered(left_at=12.5, kind="atomic")],
        "asked": [CANCEL],
    },
    "entered within 50 ms of its cancel": {
        "tasks": [CANCELLED],
        "entries": CALLED_OFF,
        "entered": [entered(at=12.08, left_at=12.1)],
        "asked": [CANCEL],
    },
    "entered late by a process that was frozen": {
        "tasks": [CANCELLED],
        "entries": CALLED_OFF,
        "entered": [entered(at=12.9, left_at=13.0)],
        "asked": [CANCEL],
        "troubles": [Trouble("frozen", 7, 11.2, 12.8)],
    },
    "a run with what follows": {"tasks": [FIRST, THEN], "entries": BOTH, "runs": [RUN], **PLAN},
    "given longer": {
        "tasks": [task(seq=3)],
        "entries": [
            DONE[0],
            Entry("a", 2, 11.5, "active", "active", 1, "", {"grace": 1}),
            DONE[1]._replace(seq=3),
        ],
    },
    "one after the other, where one may be under way": {
        "tasks": [COMPLETED, task("b")],
        "entries": [*DONE, *DONE_TOO],
        "entered": [entered(), entered(task_id="b", key="b", at=11.6, left_at=11.8)],
        **ALONE,
    },
    "after the holder was killed": {
        "tasks": [TWICE, task("b")],
        "entries": [*LOST, *DONE_TOO],
        "entered": [
            entered(left_at=None),
            entered(task_id="b", key="b", group=8, at=11.6, left_at=11.8),
            entered(2, 14.1, 14.5),
        ],
        "troubles": [KILLED],
        **ALONE,
    },
    "sent twice with one token": {"messages": [Message(("a",), "x"), Message(("a",), "x")]},
}
BAD = {
    "gone": ("lost", {"asked": [Asked("schedule", ("b",), "", 10.0, 9.0, 9.1)]}),
    "due and open": (
        "lost",
        {
            "tasks": [task(state="available", seq=0, attempt=0, finished_at=None, reason_code="")],
            "entries": [],
        },
    ),
    "a run that is not there": ("lost", {"asked": [Asked("start", (), "9", None, 9.0, 9.1)]}),
    "a run without what it begins with": ("lost", {"tasks": [], "entries": [], "runs": [RUN], **PLAN}),
    "an attempt that is in no log": ("start-not-committed", {"entered": [entered(), entered(2, 11.6, 11.7)]}),
    "a start that nobody else saw": ("start-not-committed", {"entered": [entered(seen=("available", 0))]}),
    "two that live at once": (
        "two-live-attempts",
        {
            "tasks": [TWICE],
            "entries": LOST,
            "entered": [entered(left_at=14.3), entered(2, 14.1, 14.5)],
            "troubles": [Trouble("delay", 7, 11.5, 12.0)],
        },
    ),
    "an effect too many": (
        "atomic-once",
        {"entered": [entered(kind="atomic")], "effects": [Effect("a", 1), Effect("a", 1)]},
    ),
    "an effect too few": ("atomic-once", {"entered": [entered(kind="atomic")]}),
    "an effect of another attempt": ("atomic-once", {"entered": [entered(kind="atomic")], "effects": [Effect("a", 2)]}),
    "an effect of a cancelled task": (
        "atomic-once",
        {"tasks": [CANCELLED], "entries": CALLED_OFF, "effects": [Effect("a", 1)]},
    ),
    "entered twice in one attempt": ("plain-repeat", {"entered": [entered(), entered(at=11.6, left_at=11.7)]}),
    "repeated though it went well": (
        "plain-repeat",
        {
            "tasks": [TWICE],
            "entries": [
                entry._replace(reason_code=entry.reason_code.replace("worker_lost", "error")) for entry in LOST
            ],
            "entered": [entered(), entered(2, 14.1, 14.5)],
        },
    ),
    "lost for no reason": (
        "lost-without-cause",
        {"tasks": [TWICE], "entries": LOST, "entered": [entered(), entered(2, 14.1, 14.5)]},
    ),
    "lost by another's misfortune": (
        "lost-without-cause",
        {
            "tasks": [TWICE],
            "entries": LOST,
            "entered": [entered(), entered(2, 14.1, 14.5)],
            "troubles": [KILLED._replace(group=8)],
        },
    ),
    "a move that there is not": (
        "legal-moves",
        {"entries": log(("available", "completed"), ("completed", "completed"))},
    ),
    "a move from elsewhere": ("legal-moves", {"entries": log(("available", "active"), ("retryable", "available"))}),
    "given longer without a word": (
        "legal-moves",
        {"entries": [DONE[0], Entry("a", 2, 11.5, "active", "active", 1, "", {})]},
    ),
    "a gap in the log": ("replay", {"entries": [DONE[0], DONE[1]._replace(seq=3)]}),
    "an entry too few": ("replay", {"entries": DONE[:1]}),
    "another state": ("replay", {"tasks": [task(state="discarded")]}),
    "another attempt": ("replay", {"tasks": [task(attempt=2)]}),
    "another end": ("replay", {"tasks": [task(finished_at=13.0)]}),
    "another reason": ("replay", {"tasks": [task(reason_code="shadow")]}),
    "another time": (
        "replay",
        {"entries": [DONE[0]._replace(detail={"scheduled_at": "1970-01-01T00:00:11+00:00"}), DONE[1]]},
    ),
    "a log of nothing": ("replay", {"tasks": []}),
    "before its time": ("early", {"entered": [entered(at=9.9)]}),
    "long after its cancel": (
        "after-cancel",
        {
            "tasks": [CANCELLED],
            "entries": CALLED_OFF,
            "entered": [entered(at=12.2, left_at=12.3)],
            "asked": [CANCEL],
        },
    ),
    "long after the exit of its run": (
        "after-cancel",
        {
            "tasks": [CANCELLED],
            "entries": CALLED_OFF,
            "entered": [entered(at=12.2, left_at=12.3)],
            "asked": [CANCEL._replace(verb="exit", task_ids=(), entity_id="1")],
        },
    ),
    "no follow-up": ("follow-ups", {"tasks": [FIRST], "entries": BOTH[:2], "runs": [RUN], **PLAN}),
    "two follow-ups": (
        "follow-ups",
        {
            "tasks": [FIRST, THEN, THEN._replace(id="again", occurrence="again")],
            "entries": BOTH,
            "runs": [RUN],
            **PLAN,
        },
    ),
    "a follow-up of nothing": (
        "follow-ups",
        {"tasks": [FIRST._replace(state="discarded"), THEN], "entries": BOTH, "runs": [RUN], **PLAN},
    ),
    "a run that goes on": (
        "runs-end",
        {"tasks": [FIRST, THEN], "entries": BOTH, "runs": [RUN._replace(ended_at=None, end_reason="")], **PLAN},
    ),
    "a run that ended too soon": (
        "runs-end",
        {"tasks": [FIRST._replace(state="active"), THEN], "entries": BOTH, "runs": [RUN], **PLAN},
    ),
    "two keys": (
        "idempotency-key",
        {
            "tasks": [TWICE],
            "entries": LOST,
            "entered": [entered(left_at=None), entered(2, 14.1, 14.5, key="b")],
            "troubles": [KILLED],
        },
    ),
    "a new key for what did not complete": (
        "idempotency-key",
        {
            "tasks": [CANCELLED._replace(id="before"), task(previous_id="before")],
            "entered": [entered()],
        },
    ),
    "two at once where one may be": (
        "places",
        {
            "tasks": [COMPLETED, task("b")],
            "entries": [*DONE, *DONE_TOO],
            "entered": [entered(), entered(task_id="b", key="b", at=11.4, left_at=11.8)],
            **ALONE,
        },
    ),
    "another one before the end of what is half done": (
        "places",
        {
            "tasks": [TWICE, task("b")],
            "entries": [*LOST, *DONE_TOO],
            "entered": [
                entered(left_at=None),
                entered(task_id="b", key="b", group=8, at=11.6, left_at=11.8),
                entered(2, 14.1, 14.5),
            ],
            "troubles": [KILLED],
            "limits": {"loose.plain": (1, "end")},
        },
    ),
    "two tokens for a claim": ("tokens", {"messages": [Message(("a",), "x"), Message(("a",), "y")]}),
}


class TestJudge:
    @pytest.mark.parametrize("history", GOOD.values(), ids=GOOD)
    def test_passes_what_is_right(self, history):
        assert rules(**history) == set()

    @pytest.mark.parametrize(("rule", "history"), BAD.values(), ids=BAD)
    def test_objects_to_what_is_wrong(self, rule, history):
        assert rule in rules(**history)
