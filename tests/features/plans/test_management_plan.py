"""``timeline_plan``: read before a release is let loose on the rows."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests.operations.test_differing import DAY, Before, Now
from tests.testapp.models import Order
from timeline import Machine, Timeline, task
from timeline.shortcuts import start
from timeline.testing import only_timelines


class Quiet(Timeline):
    """Nothing of it differs."""

    entity = "testapp.Order"

    @task()
    def call(self, order): ...


class Tour(Machine):
    """Two states."""

    entity = "testapp.Order"
    starts_on = "order.placed"
    initial = "NEW"
    table = {"NEW": {"order.seen": "SEEN"}, "SEEN": {}}


@pytest.fixture(autouse=True)
def _started(db, clock, now):
    clock.set(now)
    with only_timelines(Before):
        for number in (1, 2):
            start(Before, Order.objects.create(ships_at=now + number * DAY))


def called(*options):
    out = StringIO()
    try:
        call_command("timeline_plan", *options, stdout=out, no_color=True)
    except SystemExit as ended:
        return out.getvalue(), ended.code
    return out.getvalue(), 0


class TestPlan:
    def test_says_that_all_is_as_it_should_be(self):
        with only_timelines(Before):
            assert called() == ("1 timeline, 2 open runs: as they should be.\n", 0)
            assert called("care") == ("care: 2 open runs, as they should be\n", 0)

    def test_says_only_what_differs_and_what_to_call_next(self):
        with only_timelines(Now, Quiet):
            lines = called()[0].splitlines()

        assert lines[0] == "care: 2 open runs, 2 of them would change"
        assert "1 timeline, 0 open runs: as they should be." in lines
        assert lines[-1] == "Next: manage.py timeline_apply care, or timeline_sweep for all."
        assert not any("quiet" in line for line in lines)

    def test_says_of_a_machine_that_is_named_only_states_with_runs(self):
        with only_timelines(Tour):
            start(Tour, Order.objects.create())
            lines = called("tour")[0].splitlines()

        assert lines[:2] == ["tour: 1 open run, as they should be", "  NEW  1 open run"]
        assert not any("SEEN  0" in line for line in lines)

    def test_says_what_would_change_by_how_much_and_for_whom(self):
        with only_timelines(Now):
            said, status = called("care")

        lines = said.splitlines()
        assert status == 2
        assert lines[0] == "care: 2 open runs, 2 of them would change"
        assert "  remind: 2 moved by +3 days" in lines
        assert "  look: 2 new" in lines
        assert "  dropped: 2 orphaned" in lines
        assert any("2026-03-11 09:00 → 2026-03-14 09:00" in line for line in lines)

    def test_names_timelines_that_nobody_declares(self):
        with only_timelines():
            said, status = called()

        assert status == 0
        assert said.replace("\n  ", " ").splitlines() == [
            "! care: 2 open runs  no timeline has this name",
            "! care.dropped: 2 without a definition, which rest; timeline_apply care cancels them",
            "! care.remind: 2 without a definition, which rest; timeline_apply care cancels them",
            "! care.ship: 2 without a definition, which rest; timeline_apply care cancels them",
        ]

    def test_gives_plain_data(self):
        with only_timelines(Now):
            data = json.loads(called("--json")[0])

        assert (data["of_nobody"], data["undefined"]) == ({}, {"care.dropped": 2})
        assert data["timelines"][0]["tasks"]["remind"]["moved"] == 2

    def test_names_a_timeline_that_is_none(self):
        with pytest.raises(CommandError, match="cear"):
            called("cear")
