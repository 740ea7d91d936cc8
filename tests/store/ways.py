"""
Each implementation that writes moves: its name, and what it makes of which rows.

WRITERS are given rows and moves. FINDERS are the steps of a poll, of a worker and of an exit, which find their rows: on
PostgreSQL one statement finds, locks, moves and logs them; on SQLite they are read, and then written as any others. KEEPERS
write leases alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final

from hypothesis import strategies as st

from tests.databases import VENDOR
from tests.store import making
from tests.store.checking import Made
from tests.store.moves import KINDS, Kind, json_values, moves, reasons, rows, workers
from tests.store.rules import Move
from timeline.lifecycle import OPEN, WAITING, State, Trigger

JUST_OVER: Final = timedelta(milliseconds=-1)
MOST: Final = 5  # Rows in a set.

Example = tuple[list[dict[str, Any]], list[Move | None], Move]


@dataclass(frozen=True, kw_only=True)
class Way:
    """
    One implementation.

    Args:
        name: In words.
        make: Have it make moves: the rows, a move for each (None: it has none from there), and what the moves have in common.
        kinds: Of moves that it makes.
        common: What the moves of a call have in common; None: each is its own, and it is shown no other rows.
        fits: What a row must have for it; told how many there are.
        of_one: Whether it takes one row at a time.
    """

    name: str
    make: Callable[[making.Tasks, making.Moves, Move], Made]
    kinds: Collection[Kind]
    common: st.SearchStrategy[Move] | None = None
    fits: Callable[[making.Row, int], dict[str, Any]] = making.as_it_is
    of_one: bool = False

    def __str__(self) -> str:
        return self.name

    def move(self, kind: Kind, common: Move) -> st.SearchStrategy[Move | None]:
        """What it makes of a row of this kind; None: nothing."""
        if kind not in self.kinds:
            return st.none()
        return moves(kind) if self.common is None else st.just(common.by(kind.triggers))


@st.composite
def examples(draw: st.DrawFn, way: Way, kind: Kind | None = None) -> Example:
    """
    Rows for this way, with what it is to make of each.

    Args:
        draw: Hypothesis's.
        way: To go.
        kind: Of all of them, in a set of one or two; None: any, and rows in states from which it has no move.
    """
    if kind is None:
        from_there = {known.state: known for known in way.kinds}
        others = [] if way.common is None else [Kind(state) for state in State if state not in from_there]
        sizes = {"min_size": 1, "max_size": 1} if way.of_one else {"min_size": 2, "max_size": MOST}
        kinds = draw(st.lists(st.sampled_from([*way.kinds, *others]), unique=True, **sizes))
    else:
        kinds = [kind] * (1 if way.of_one else draw(st.integers(1, 2)))
    common = draw(st.just(Move()) if way.common is None else way.common)
    return [draw(rows(one.state)) for one in kinds], [draw(way.move(one, common)) for one in kinds], common


def _kinds(states: Collection[State], *triggers: Trigger) -> list[Kind]:
    return [kind for kind in KINDS if kind.state in states and kind.triggers == triggers]


def _lease(length: timedelta | None = None, sent: str | None = None) -> st.SearchStrategy[Move]:
    return st.just(Move(lease=length, sent=sent, logged=False))


_NOTHING: Final = st.just(Move())
_REASON: Final = st.builds(Move, reason=reasons)
_EXPLAINED: Final = st.builds(
    Move, reason=reasons, evidence=st.dictionaries(st.sampled_from(["grace", "note"]), json_values, max_size=2)
)
_WORKER: Final = st.builds(Move, worker=workers)
_STARTS: Final = [
    *_kinds({State.AVAILABLE, State.PENDING}, Trigger.START),
    *_kinds(WAITING, Trigger.DUE, Trigger.START),
]

WRITERS: Final = [
    Way(name="apply to one", make=partial(making.apply, wait=True), kinds=KINDS, of_one=True),
    Way(name="apply to many", make=partial(making.apply, wait=True), kinds=KINDS),
]
if VENDOR == "postgresql":  # There, who waits for nobody makes the move by another statement.
    WRITERS.append(
        Way(name="apply to one, in passing", make=partial(making.apply, wait=False), kinds=KINDS, of_one=True)
    )
    WRITERS.append(  # And what a machine's move cancels, with all else of the move.
        Way(
            name="move at once",
            make=making.move_at_once,
            kinds=_kinds(OPEN, Trigger.CANCEL),
            common=_EXPLAINED,
            fits=making.without_place,
        )
    )
FINDERS: Final = [
    Way(name="stage", make=making.stage, kinds=_kinds(WAITING, Trigger.DUE), common=_NOTHING, fits=making.due),
    Way(
        name="claim",
        make=making.claim,
        kinds=_kinds({State.AVAILABLE}, Trigger.CLAIM),
        common=_NOTHING,
        fits=making.ready,
    ),
    Way(name="begin", make=making.begin, kinds=_STARTS, common=_WORKER, fits=making.startable),
    Way(
        name="begin a group",
        make=making.begin_group,
        kinds=_kinds({State.AVAILABLE}, Trigger.START),
        common=_WORKER,
        fits=making.ready,
        of_one=VENDOR == "sqlite",
    ),
    *(
        Way(
            name=f"call off by {whose}",
            make=partial(making.call_off, whose=whose),
            kinds=_kinds(OPEN, Trigger.CANCEL),
            common=_REASON,
            fits=making.of_a_run if whose == "runs" else making.of_the_entity,
        )
        for whose in ("entity", "kin", "runs")
    ),
]
KEEPERS: Final = [
    Way(
        name="hand back",
        make=making.hand_back,
        kinds=_kinds({State.PENDING}),
        common=_lease(JUST_OVER, ""),
        fits=making.of_the_claim,
    ),
    Way(name="extend", make=making.extend, kinds=_kinds({State.ACTIVE}), common=_lease()),
    Way(
        name="let go of the silent",
        make=making.let_go,
        kinds=_kinds({State.ACTIVE}),
        common=_lease(JUST_OVER),
        fits=making.of_the_silent,
    ),
    Way(name="send again", make=making.resend, kinds=_kinds({State.PENDING}), common=_NOTHING, fits=making.overdue),
]
WAYS: Final = [*WRITERS, *FINDERS, *KEEPERS]
