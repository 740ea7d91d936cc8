"""Rows and moves, made up: each legal move of the lifecycle, with all that may come with it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from tests.store.rules import Move, NewTimes
from timeline.lifecycle import COMPOSED, FINAL, LEASED, OPEN, TRANSITIONS, Reason, ReasonCode, State, Trigger

NOW: Final = datetime(2026, 3, 1, 9, 0, 0, 123456, tzinfo=UTC)
TASK_KEY: Final = "trial.remind"


class Kind(NamedTuple):
    """A kind of change: from where, by what. No trigger: the state stays."""

    state: State
    triggers: tuple[Trigger, ...] = ()

    def __str__(self) -> str:
        return " ".join([self.state.value, *(trigger.value for trigger in self.triggers)])


SINGLE: Final = [Kind(state, (trigger,)) for state, trigger in TRANSITIONS]
_ONE_AFTER_THE_OTHER: Final = {
    Kind(state, (first, second)): (state, end)
    for (state, first), between in TRANSITIONS.items()
    for (source, second), end in TRANSITIONS.items()
    if source == between
}
PAIRS: Final = [kind for kind, pair in _ONE_AFTER_THE_OTHER.items() if pair in COMPOSED]
STAYING: Final = [Kind(state) for state in State if state in OPEN]
KINDS: Final = [*SINGLE, *PAIRS, *STAYING]
UNCOMPOSED: Final = [kind for kind in _ONE_AFTER_THE_OTHER if kind not in PAIRS]
ILLEGAL: Final = [
    Kind(state, (trigger,)) for state in State for trigger in Trigger if (state, trigger) not in TRANSITIONS
]

# Few of each kind, all odd: what is drawn freely takes longer than what is tested with it.
texts = st.sampled_from(
    ["", " ", "plain", "ä☃𝄞\u0301", """it's "so"; -- %s {final} \\""", "\x01\t\n", "null", "x" * 12]
)
json_values = st.sampled_from(
    [None, True, 0, -1, 2**53, 0.25, "", "☃ %s", [], {}, [None, [1]], {"": {"a b": [False, "}"]}, "null": None}]
)
times = st.integers(-(10**15), 10**15).map(lambda microseconds: NOW + timedelta(microseconds=microseconds))
dates = times.map(datetime.date)
small = st.integers(0, 4)
tokens = st.none() | st.uuids(version=4)
reasons = st.builds(
    Reason,
    st.sampled_from(ReasonCode),
    # What cannot be stored is left out, or cut: no database takes NUL, nor half of a character that has two halves.
    texts | st.sampled_from(["x" * 200, "x" * 201, "ä" * 300, "a\x00b\ud800c", "\x00" + "x" * 200]),
    texts | st.sampled_from(["x" * 150, "x" * 151, "\x00"]),
)
workers = texts | st.just("ü" * 100)
leases = st.integers(1, 10**7).map(lambda milliseconds: timedelta(milliseconds=milliseconds))
new_times = st.builds(
    NewTimes,
    nominal_at=times,
    scheduled_at=times,
    anchor=texts,
    anchor_value=st.none() | times,
    anchor_date=st.none() | dates,
    planned_at=st.none() | times,
    expires_at=st.none() | times,
)


@cache
def rows(state: State) -> st.SearchStrategy[dict[str, Any]]:
    """Rows in this state: whatever the constraints let them be, but for what tells them apart."""
    codes = [code.value for code in ReasonCode]
    return st.fixed_dictionaries(
        {
            "state": st.just(state),
            "seq": small,
            "priority": st.integers(-5, 5),
            "nominal_at": times,
            "scheduled_at": times,
            "planned_at": st.none() | times,
            "anchor": texts,
            "anchor_value": st.none() | times,
            "anchor_date": st.none() | dates,
            "definition_hash": st.sampled_from(["", "0123456789abcdef"]),
            "expires_at": st.none() | times,
            "payload": st.sampled_from([{}, {"a b": [None, "☃"]}]),
            "attempt": small,
            "failures": small,
            "lost": small,
            "max_attempts": st.integers(1, 30),
            "claim_token": tokens,
            "lease_expires_at": times if state in LEASED else st.none(),
            "sent_at": st.none() | times,
            "worker": workers,
            "result": json_values,
            "error": texts,
            "fingerprint": st.sampled_from(["", "0123456789abcdef"]),
            "awaits": st.sampled_from(["", "order.paid order.closed"]),
            "awaits_key": st.sampled_from(["", "7"]),
            "awaits_label": st.sampled_from(["", "testapp.order"]),
            "awaits_id": st.sampled_from(["", "1"]),
            "awaits_other": st.booleans(),
            # Its own, lest two of them have the same place.
            "limit_key": st.uuids(version=4).map(str),
            "slot": st.integers(1 if state in LEASED else 0, 3),
            "held_until": st.sampled_from(["attempt", "end", "opened", "end+", "opened+"]),
            "reason_code": st.sampled_from(codes if state in FINAL else ["", *codes]),
            "reason": texts,
            "actor": texts,
            "created_at": times,
            "started_at": st.none() | times,
            "finished_at": times if state in FINAL else st.none(),
        }
    )


def _places(kind: Kind) -> st.SearchStrategy[int | None]:
    """What becomes of a place: one is taken on the way to a worker, and may be given up where an attempt ends."""
    if kind.triggers and kind.triggers[-1] in (Trigger.CLAIM, Trigger.START):
        return st.integers(1, 9)
    return st.none() | st.just(0) if kind.triggers and kind.triggers[-1] != Trigger.DUE else st.none()


@cache
def moves(kind: Kind) -> st.SearchStrategy[Move]:
    """Changes of this kind, with anything that may come with one. What ends has a reason."""
    ends = bool(kind.triggers) and TRANSITIONS.get((kind.state, kind.triggers[0])) in FINAL
    described = st.fixed_dictionaries({"class": texts, "message": texts, "traceback": texts})
    return st.builds(
        Move,
        triggers=st.just(kind.triggers),
        reason=reasons if ends else st.none() | reasons,
        scheduled_at=st.none() | times,
        times=st.none() | new_times,
        definition_hash=st.none() | st.sampled_from(["", "fedcba9876543210"]),
        result=st.none() | json_values.map(json.dumps),
        error=st.none() | described,
        fingerprint=st.sampled_from(["", "fedcba9876543210"]),
        failures=small,
        lost=small,
        claim_token=tokens,
        worker=st.none() | workers,
        lease=st.none() | leases,
        slot=_places(kind),
        evidence=st.dictionaries(st.sampled_from(["grace", "resend", "passing", "note"]), json_values, max_size=2),
    )
