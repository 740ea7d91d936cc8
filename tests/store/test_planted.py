"""Drifts planted in one implementation, each of which the comparison with the rules must find."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection
from hypothesis import given
from hypothesis import settings as bounded
from hypothesis import strategies as st

from tests.faults.planted.surgery import Change, Fault, planted
from tests.store.checking import check
from tests.store.test_conformance import few
from tests.store.ways import WAYS, examples
from timeline.exceptions import TransitionNotAllowed

pytestmark = pytest.mark.django_db

# By the name of the ways that it shows in, and perhaps the moves.
DRIFTS = {
    "apply": [
        Fault(
            "a token stays with what is not held",
            (
                Change("transition", "        claim_token = NULL,  -- if not leased\n", "", "postgresql"),
                Change("transition", "WHEN 'active' THEN task.claim_token", "ELSE task.claim_token", "sqlite"),
            ),
        ),
        Fault(
            "a worker without a name is not written",
            (Change("store.changes:_as_change", "if value not in (None, 0):", "if value:"),),
        ),
        Fault(
            "new times keep the old value of the anchor",
            (
                Change(
                    "transition",
                    "CASE WHEN change.nominal_at IS NULL THEN task.anchor_value ELSE change.anchor_value END",
                    "COALESCE(change.anchor_value, task.anchor_value)",
                ),
            ),
        ),
        Fault(
            "failures are set, not added",
            (Change("transition", "failures = task.failures + COALESCE", "failures = COALESCE"),),
        ),
        Fault(
            "the log has no actor",
            (
                Change("transition", "COALESCE(log_actor, '')", "''", "postgresql"),
                Change("log", "COALESCE(change.actor, '')", "''", "sqlite"),
            ),
        ),
        Fault(
            "what is given back does not know when it was sent",
            (
                Change(
                    "store.composing:_composed",
                    "in touched))",
                    'in touched and name != "sent_at"))',
                    "postgresql",
                ),
                Change("transition", "lease_expires_at, sent_at, worker", "lease_expires_at, worker", "sqlite"),
            ),
        ),
    ],
    "apply: due start": [
        Fault(
            "the first entry of two has the attempt of the second",
            (
                Change(
                    "transition", "from_state, via, from_attempt, ''", "from_state, via, log_attempt, ''", "postgresql"
                ),
                Change("log", "change.via, change.from_attempt, ''", "change.via, task.attempt, ''", "sqlite"),
            ),
        ),
    ],
    "begin": [
        Fault(
            "what is available gets the token of the message",
            (
                Change(
                    "advance", "WHEN 'active' THEN task", "WHEN 'active' THEN %(token)s::uuid ELSE task", "postgresql"
                ),
                Change("transition", "WHEN 'active' THEN task.claim_token", "WHEN 'active' THEN task.id", "sqlite"),
            ),
        ),
        Fault(
            "an attempt is not counted",
            (
                Change(
                    "advance",
                    "task.attempt + CASE WHEN %(to_state)s = 'active' THEN 1",
                    "task.attempt + CASE WHEN %(to_state)s = 'active' THEN 0",
                    "postgresql",
                ),
                Change(
                    "transition",
                    "task.attempt + (change.to_state = 'active' AND",
                    "task.attempt + (change.to_state = '' AND",
                    "sqlite",
                ),
            ),
        ),
        Fault(
            "two moves at once are one step",
            (
                Change("advance", "THEN 2 ELSE 1 END", "THEN 1 ELSE 1 END", "postgresql"),
                Change("transition", "MAX(change.moves, 1)", "1", "sqlite"),
            ),
        ),
    ],
    "claim": [
        Fault(
            "a claim does not say when its message was sent",
            (
                Change("advance", "        sent_at = clock_timestamp(),  -- if claims\n", "", "postgresql"),
                Change("transition", "WHEN 'pending' THEN strftime", "WHEN '' THEN strftime", "sqlite"),
            ),
        ),
        Fault(
            "a claim lasts as long as an attempt",
            (
                Change(
                    "store.advancing:advance",
                    "get_settings().resend_after if to == State.PENDING else",
                    "",
                    "postgresql",
                ),
                Change("dispatch.claiming:claim", "lease = get_settings().resend_after", "lease = None", "sqlite"),
            ),
        ),
        Fault(
            "what waits is claimed",
            (
                Change("held_shares", "state = 'available'", "state IN ('available', 'scheduled')", "postgresql"),
                Change("dispatch.claiming:_of", ".ready()", ".filter(state__in=['available', 'scheduled'])", "sqlite"),
            ),
        ),
    ],
    "call off": [
        Fault(
            "what is cancelled has no end",
            (
                Change(
                    "advance",
                    "finished_at = %(at)s::timestamptz  -- if ends",
                    "finished_at = NULL  -- if ends",
                    "postgresql",
                ),
                Change("transition", "finished_at = CASE WHEN", "finished_at = CASE WHEN FALSE AND", "sqlite"),
            ),
        ),
        Fault(
            "what is cancelled ends by the machine's clock",
            (
                Change("advance", "finished_at = %(at)s::timestamptz", "finished_at = clock_timestamp()", "postgresql"),
                Change(
                    "transition",
                    "IN ({final}) THEN %(at)s",
                    "IN ({final}) THEN strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')",
                    "sqlite",
                ),
            ),
        ),
    ],
    "hand back unsent": [
        Fault("it counts as sent", (Change("dispatch.claiming:hand_back", '{"sent_at": None} if', "{} if"),)),
    ],
    "extend": [
        Fault(
            "a lease is extended by less",
            (Change("dispatch.extending:extend_leases", "get_settings().LEASE", "get_settings().LEASE / 2"),),
        ),
    ],
    "send again": [
        Fault(
            "a message that is sent again waits no longer",
            (Change("dispatch.rescuing:_wait", "2 ** min(times, 20)", "1"),),
        ),
    ],
}
PLANTED = [(ways, fault) for ways, faults in DRIFTS.items() for fault in faults]


def compare(ways):
    """Compare what these ways make with the rules, of all kinds of moves or of some, until something differs."""
    name, _, about = ways.partition(": ")
    there = [(way, kind) for way in WAYS if way.name.startswith(name) for kind in (*way.kinds, None)]
    kinds = [(way, kind) for way, kind in there if about in str(kind or "")]

    @bounded(few, max_examples=200, report_multiple_bugs=False)
    @given(data=st.data())
    def each(data):
        way, kind = data.draw(st.sampled_from(kinds))
        check(way, *data.draw(examples(way, kind)))

    each()


class TestDrift:
    @pytest.mark.parametrize(("ways", "fault"), PLANTED, ids=[f"{ways}: {fault.name}" for ways, fault in PLANTED])
    def test_is_found(self, ways, fault, tmp_path):
        """By the comparison; or the package or the database refuses what it leads to."""
        with planted(fault, tmp_path), pytest.raises((AssertionError, TransitionNotAllowed, DatabaseError)):
            compare(ways)

        assert not connection.needs_rollback
