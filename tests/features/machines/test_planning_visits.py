"""What is bound to a state: one open row, of the present visit; of what is over, none."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.planning.situations import NOW, START, Row
from timeline import Machine, Retry, on, task
from timeline.features.machines.visits import wait_of
from timeline.lifecycle import OPEN, ReasonCode, State
from timeline.planning import Cancel, Create, Keep, VisitPlace, plan
from timeline.timing import Backoff

HERE = VisitPlace("asked", NOW, 3)


class Ask(Machine):
    entity = "testapp.Order"
    initial = "new"
    table = {
        "new": {"ask": "asked"},
        "asked": {"answer": "over", "late": "late"},
        "late": {"again": "asked"},
        "over": {},
    }
    working = ("new", "asked", "late")

    @task(on("asked", "late", hours=1))
    def remind(self, order): ...


def plan_in(place, rows=(), *, spare=(), now=NOW):
    return plan(
        Ask.definition, started_at=START, anchors={}, rows=rows, zone=NOW.tzinfo, now=now, spare=spare, by_table=True,
        place=place,
    )  # fmt: skip


def row(occurrence="3", state=State.SCHEDULED, **columns):
    given = {"nominal_at": NOW + timedelta(hours=1), "anchor_value": NOW, "anchor": "state:asked"} | columns
    return Row("remind", state, occurrence=occurrence, **given)


class TestAVisit:
    def test_has_a_row_of_its_own(self):
        [change] = plan_in(HERE).changes

        assert isinstance(change, Create)
        assert (change.occurrence, change.revision, change.times.anchor) == ("3", 1, "state:asked")
        assert (change.times.anchor_value, change.times.nominal_at) == (NOW, NOW + timedelta(hours=1))

    def test_keeps_the_row_it_has(self):
        assert [type(change) for change in plan_in(HERE, [row()]).changes] == [Keep]

    @pytest.mark.parametrize("state", sorted(OPEN))
    @pytest.mark.parametrize("place", [VisitPlace("new", NOW, 4), VisitPlace("over", NOW, 4), None])
    def test_leaves_none_open_when_it_is_over(self, state, place):
        [change] = plan_in(place, [row(state=state)]).changes

        assert isinstance(change, Cancel)
        assert (change.reason.code, change.why) == (ReasonCode.STATE, "its run is not in asked any more")

    def test_of_the_same_state_begins_anew(self):
        cancelled, created = sorted(
            plan_in(replace(HERE, moves=4), [row()]).changes, key=lambda one: type(one).__name__
        )

        assert (cancelled.row.occurrence, created.occurrence, created.revision) == ("3", "4", 1)

    def test_spares_what_is_being_run(self):
        running = row(state=State.ACTIVE)

        assert [
            type(change) for change in plan_in(VisitPlace("new", NOW, 4), [running], spare=[running.id]).changes
        ] == [Keep]
        assert [type(change) for change in plan_in(HERE, [running], spare=[running.id]).changes] == [Keep]

    @pytest.mark.parametrize("code", [ReasonCode.DONE, ReasonCode.ERROR, ReasonCode.GUARD, ReasonCode.OPERATOR])
    def test_is_done_once(self, code):
        ended = row(state=State.COMPLETED, reason_code=code)

        assert [type(change) for change in plan_in(HERE, [ended]).changes] == [Keep]

    def test_makes_again_what_was_left_open(self):
        [change] = plan_in(HERE, [row(state=State.CANCELLED, reason_code=ReasonCode.SUPERSEDED)]).changes

        assert (type(change), change.revision, change.like.occurrence) == (Create, 2, "3")

    def test_cancels_what_was_planned_otherwise_before(self):
        [cancelled, _created] = sorted(plan_in(HERE, [row("")]).changes, key=lambda one: type(one).__name__)

        assert cancelled.reason.code == ReasonCode.DEFINITION


class TestABackoff:
    BACKOFF = Backoff(Retry(base=timedelta(seconds=30), cap=timedelta(hours=1), jitter=0.2, max_attempts=3), "up")

    def test_waits_as_long_for_the_same_visit_however_often_it_is_asked(self):
        waits = {wait_of(self.BACKOFF, VisitPlace("asked", NOW, 3, 2), ("a", "1", "")) for _ in range(5)}

        [wait] = waits
        assert timedelta(seconds=60) <= wait <= timedelta(seconds=72)
        assert wait != wait_of(self.BACKOFF, VisitPlace("asked", NOW, 5, 2), ("a", "1", ""))
