"""The booking of the demo, a machine of 28 states, about an entity of the tests; and what tests ask of machines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise

from django.db import connection
from django.test.utils import CaptureQueriesContext

from project.portal.errors import BadLogin, Captcha, PortalTimeout
from project.portal.states import ENDS, RESTS, WORKING_ONES, S
from project.portal.table import EVENTS, TABLE
from timeline import OPEN, WORKING, Machine, Retry, after, at, on
from timeline.models import RunEntry, TimelineRun

__all__ = [
    "ENDS",
    "ERRORS",
    "EVENTS",
    "RESTS",
    "TABLE",
    "TIMERS",
    "BadLogin",
    "Booking",
    "Captcha",
    "PortalTimeout",
    "S",
    "expected",
    "is_whole",
    "no_write",
    "placed",
    "replayed",
    "written",
]

TIMERS = {
    "otp.timed_out": after(S.AUTH_OTP_REQUIRED, S.CONFIRM_OTP_REQUIRED, minutes=10),
    "release.reached": at("ships_at"),
    "sla.release": on(S.AWAITING_RELEASE, days=2),
    "sla.captcha": on(S.AUTH_CAPTCHA_REQUIRED, hours=1),
    "sla.credentials": after(S.CREDENTIALS_REQUIRED, days=2),
    "look.again": after(S.NO_SLOT, minutes=5),
    "choice.timed_out": after(S.CHOICE_REQUIRED, minutes=30),
    "hold.over": after(S.DOCUMENTS_REQUIRED, S.PAYMENT_REQUIRED, minutes=20),
    "sla.operator": after(S.OPERATOR_ESCALATED, hours=4),
    "retry.due": after(
        S.RETRY_SCHEDULED,
        backoff=Retry(base=timedelta(seconds=30), cap=timedelta(hours=1), max_attempts=6),
        spent="retries.used_up",
    ),
}
ERRORS = {
    PortalTimeout: "portal.error",
    BadLogin: "auth.rejected",
    Captcha: "auth.captcha",
    Exception: "portal.unknown",
}


class Booking(Machine):
    """An appointment on a portal that does not want to be booked."""

    entity = "testapp.Order"
    starts_on = "booking.created"
    initial = S.CREATED
    table = TABLE
    working = WORKING_ONES
    timers = TIMERS
    errors = ERRORS


def expected(state, event):
    """What the table says, read by hand; None: it does not take it."""
    if state in ENDS:
        return None
    rows = [TABLE[state], *([TABLE[WORKING]] if state not in RESTS else []), TABLE[OPEN]]
    return next((row[event] for row in rows if event in row), None)


def placed(order, state, *, machine=Booking, back="", **columns):
    """A run in a state, as if it had come there: with the one entry that says so."""
    columns.setdefault("started_at", "2026-03-01T09:00Z")
    run = TimelineRun.objects.create(
        timeline=machine.definition.name,
        entity_label=order._meta.label_lower,
        entity_id=str(order.pk),
        state=str(state),
        state_at=columns["started_at"],
        back=back,
        **columns,
    )
    RunEntry.objects.create(run=run, seq=0, at=columns["started_at"], to_state=str(state), back=back)
    run.refresh_from_db()
    return run


def replayed(run):
    """Replay the entries of a run: the four columns that they lead to."""
    entries = list(RunEntry.objects.filter(run=run.pk).order_by("seq"))
    assert [entry.seq for entry in entries] == list(range(len(entries)))
    assert all(after.from_state == before.to_state for before, after in pairwise(entries))
    last = entries[-1]
    return last.to_state, last.at, last.back, last.seq


def is_whole(run):
    """Whether the entries of a run lead to what it is."""
    run = TimelineRun.objects.get(pk=run.pk)
    return replayed(run) == (run.state, run.state_at, run.back, run.moves)


_READING = {"SELECT", "SAVEPOINT", "RELEASE", "ROLLBACK", "BEGIN", "COMMIT"}
_WRITERS = [f"timeline_{name}(" for name in ("move_runs", "move_at_once", "record_step", "record_place")]


def written(queries):
    """Statements that write, of the log of queries. A function that writes is selected from."""
    said = [query["sql"] for query in queries]
    return [sql for sql in said if _verb_of(sql) not in _READING or any(writer in sql for writer in _WRITERS)]


def _verb_of(sql):
    locks_and_reads = sql.startswith("WITH held(key)")
    return "SELECT" if locks_and_reads else sql.lstrip("( \n").split(None, 1)[0].upper()


@contextmanager
def no_write() -> Iterator[CaptureQueriesContext]:
    """See that nothing is written within the block: by the log of queries."""
    with CaptureQueriesContext(connection) as queries:
        yield queries
    assert written(queries) == []
