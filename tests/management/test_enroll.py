"""``timeline_enroll``: shown first, then done, for those who were there before."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests.operations.test_past import DAY, Stay
from tests.testapp.models import Order
from timeline.models import ScheduledTask, TimelineRun
from timeline.testing import only_timelines


@pytest.fixture(autouse=True)
def _story(db, clock, now):
    clock.set(now)
    with only_timelines(Stay):
        yield


@pytest.fixture
def orders(now):
    return [Order.objects.create(ships_at=now + number * DAY, paid=number > 0) for number in range(-2, 3)]


def run(*arguments, tty=False):
    out = StringIO()
    out.isatty = lambda: tty
    call_command("timeline_enroll", *arguments, stdout=out, no_color=True)
    return out.getvalue()


class TestEnroll:
    def test_shows_tasks_by_day_and_writes_nothing(self, orders):
        lines = run("stay").splitlines()

        assert lines[0] == "Of 5 rows, 5 would get a run; 0 have one."
        assert lines[1] == "ship: 2 due before, never to be run."
        assert lines[2].split() == ["day", "remind", "ship"]
        assert lines[3].split() == ["2026-03-01", "0", "1"]
        assert lines[6].split() == ["2026-03-11", "5", "0"]
        assert lines[-1] == "Nothing was written. Say --apply to do it."
        assert not TimelineRun.objects.exists()

    def test_does_it_and_goes_on_where_it_was(self, orders):
        assert run("stay", "--filter", "paid=True", "--apply", "--batch", "1").startswith(
            "Runs begun: 2, with tasks: 4."
        )

        said = run("stay", "--apply", "--past", "run", "--spread", "6h")

        assert said.startswith(
            "Runs begun: 3, with tasks: 6. Of these, were due before and do not run: 0. Passed over: 2."
        )
        assert run("stay", "--apply").startswith("Runs begun: 0")
        assert ScheduledTask.objects.filter(state="scheduled", task_key="stay.ship").count() == 5

    def test_counts_from_a_field_or_a_day(self, orders, now):
        run("stay", "--apply", "--started-at", "ships_at", "--filter", f"pk={orders[0].pk}")
        run("stay", "--apply", "--started-at", "2026-02-25", "--filter", f"pk={orders[1].pk}")

        first, second = ScheduledTask.objects.filter(task_key="stay.remind").order_by("entity_id")
        assert first.nominal_at == now + 8 * DAY
        assert second.nominal_at.isoformat() == "2026-03-07T00:00:00+00:00"

    def test_draws_a_bar_on_a_terminal_and_wipes_it_out(self, orders):
        shown = run("stay", "--apply", "--batch", "2", tty=True)

        assert "[############..................] 2 / 5" in shown
        assert "\r[" not in run("stay", "--apply")
        assert shown.rsplit("\r", 1)[1].startswith("Runs begun: 5")

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            (["nobody"], "nobody"),
            (["stay", "--filter", "size=3"], "filter"),
            (["stay", "--filter", "paid"], "give LOOKUP=VALUE"),
            (["stay", "--filter", "note__regex=("], r"filter: does not fit testapp\.Order"),
            (["stay", "--filter", "title=\udcff"], "no text in UTF-8"),
            (["stay", "--database", "nope"], "'nope' is no database here"),
            (["stay", "--spread", "soon"], "'soon' is no duration"),
            (["stay", "--spread", "999999d"], "spread"),
            (["stay", "--started-at", "note"], "'note' is no date or datetime field"),
            (["stay", "--started-at", "2026-02-31"], "is no time"),
            (["stay", "--batch", "0"], "batch_size"),
            (["stay", "--past", "perhaps"], "perhaps"),
        ],
    )
    def test_names_what_does_not_do(self, orders, arguments, problem):
        with pytest.raises(CommandError, match=problem):
            run(*arguments)

        assert not TimelineRun.objects.exists()

    def test_names_the_row_that_stops_it_and_says_that_those_before_it_stand(self, orders, now):
        wrong = orders[3]
        Order.objects.filter(pk=wrong.pk).update(ships_at=now.replace(year=9500))

        with pytest.raises(CommandError, match=rf"^testapp.order {wrong.pk}: ships_at: .* before it stands"):
            run("stay", "--apply", "--batch", "1")

        assert TimelineRun.objects.count() == 3
