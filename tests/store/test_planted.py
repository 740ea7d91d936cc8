"""Drifts planted in the rules, or in what uses them, each of which the comparison with the rules must find."""

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
            (Change("columns", "    claim_token = NULL,  -- if not lease\n", ""),),
        ),
        Fault(
            "a worker without a name is not written",
            (Change("store.changes:_as_change", "if value not in (None, 0):", "if value:"),),
        ),
        Fault(
            "a lease is as long as ever",
            (Change("store.changes:_as_change", "lease if write.lease is None else write.lease", "lease"),),
        ),
        Fault(
            "new times keep the old value of the anchor",
            (
                Change(
                    "columns",
                    "CASE WHEN change.nominal_at IS NULL THEN task.anchor_value ELSE change.anchor_value END",
                    "COALESCE(change.anchor_value, task.anchor_value)",
                ),
            ),
        ),
        Fault(
            "failures are set, not added",
            (Change("columns", "failures = task.failures + COALESCE", "failures = COALESCE"),),
        ),
        Fault("the log has no actor", (Change("entries", "COALESCE(said_by, '')", "''"),)),
        Fault(
            "what is given back does not know when it was sent",
            (
                Change(
                    "store.changes:composed",
                    "*_COLUMN.findall(rules)",
                    '*(name for name in _COLUMN.findall(rules) if name != "sent_at")',
                ),
            ),
        ),
    ],
    "apply: due start": [
        Fault(
            "the first entry of two has the attempt of the second",
            (Change("entries", "attempt - CASE state WHEN 'active' THEN 1 ELSE 0 END", "attempt"),),
        ),
    ],
    "begin": [
        Fault(
            "what is available gets the token of the message",
            (Change("columns", "WHEN 'active' THEN task.claim_token", "WHEN 'active' THEN task.id"),),
        ),
        Fault("an attempt is not counted", (Change("columns", "    attempt = task.attempt + ", "    attempt = 0 * "),)),
        Fault("two moves at once are one step", (Change("columns", "THEN 1 ELSE 2 END", "THEN 1 ELSE 1 END"),)),
        Fault(
            "what waits is not due first",
            (
                Change("store.changes:composed", 'touches |= {"via"}', "pass", "postgresql"),
                Change("engine.attempts:_triggers", "(Trigger.DUE, Trigger.START)", "(Trigger.START,)", "sqlite"),
            ),
        ),
    ],
    "claim": [
        Fault(
            "a claim does not say when its message was sent",
            (Change("columns", "WHEN 'pending' THEN {machine_now}", "WHEN '' THEN {machine_now}"),),
        ),
        Fault(
            "a claim lasts as long as an attempt",
            (Change("dispatch.claim:claim", "get_settings().resend_after", "get_settings().LEASE"),),
        ),
        Fault(
            "what waits is claimed",
            (
                Change("held_shares", "state = 'available'", "state IN ('available', 'scheduled')", "postgresql"),
                Change("dispatch.claim:_of", ".ready()", ".filter(state__in=['available', 'scheduled'])", "sqlite"),
            ),
        ),
    ],
    "call off": [
        Fault(
            "what is cancelled has no end",
            (Change("columns", "finished_at = CASE WHEN", "finished_at = CASE WHEN FALSE AND"),),
        ),
        Fault(
            "what is cancelled ends by the machine's clock",
            (Change("columns", "IN ({final}) THEN {at}", "IN ({final}) THEN {machine_now}"),),
        ),
    ],
    "hand back": [
        Fault("it counts as sent", (Change("dispatch.claim:hand_back", ", sent_at=None", ""),)),
    ],
    "extend": [
        Fault(
            "a lease is extended by less",
            (Change("dispatch.worker_signs:extend_leases", "get_settings().LEASE", "get_settings().LEASE / 2"),),
        ),
    ],
    "send again": [
        Fault(
            "a message that is sent again waits no longer",
            (Change("dispatch.rescue:_wait", "2 ** min(times, 20)", "1"),),
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
