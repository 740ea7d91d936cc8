"""A shop had a status column for years. It looks what a machine would make of it, begins, is killed, and goes on."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from tests.testapp.models import Order, Trip
from tests.trips import Travel
from timeline import Machine, at, task
from timeline.models import RunEntry, TimelineRun
from timeline.shortcuts import emit
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

MAPPED = ["--map", "open=PLANNED", "--map", "a=b=UNDER_WAY", "--map", "done=ARRIVED"]


class Killed(BaseException):
    """As SIGKILL: nothing catches it."""


@pytest.fixture(autouse=True)
def _travel():
    with only_timelines(Travel):
        yield


def adopt(*options):
    out = StringIO()
    call_command("timeline_adopt_machine", "travel", "--from", "status", *options, stdout=out, no_color=True)
    return out.getvalue().splitlines()


def fill():
    statuses = ["open"] * 12 + ["a=b"] * 5 + ["done"] * 3
    Trip.objects.bulk_create([Trip(status=status) for status in statuses])


def killed_at(wanted):
    """Let the process die at the nth INSERT of entries."""
    seen = []

    def die(execute, sql, *given):
        if "INSERT" in sql and RunEntry._meta.db_table in sql:
            seen.append(sql)
            if len(seen) == wanted:
                raise Killed
        return execute(sql, *given)

    return connection.execute_wrapper(die)


class TestAShopWithAStatusColumn:
    def test_looks_first_and_writes_nothing(self):
        fill()

        said = adopt(*MAPPED)

        assert said == [
            "value   state      rows",
            "'open'  PLANNED      12",
            "'a=b'   UNDER_WAY     5",
            "'done'  ARRIVED       3  left out",
            "Nothing was written. Say --apply to do it.",
        ]
        assert not TimelineRun.objects.exists()

    def test_is_told_what_it_forgot_before_anything_is_written(self, capsys):
        fill()
        Trip.objects.create(status="lost")

        with pytest.raises(CommandError, match=r"'lost'. Map each to a state, or skip it"):
            adopt(*MAPPED, "--apply")

        assert not TimelineRun.objects.exists()

    @pytest.mark.parametrize("wanted", [1, 2, 4])
    def test_is_killed_in_the_middle_and_goes_on(self, wanted):
        fill()

        with killed_at(wanted), pytest.raises(Killed):
            adopt(*MAPPED, "--apply", "--batch", "5")
        assert TimelineRun.objects.count() == RunEntry.objects.count() == 5 * (wanted - 1)
        said = adopt(*MAPPED, "--apply", "--batch", "5")

        begun = 17 - 5 * (wanted - 1)
        assert said[-1].startswith(f"Runs begun: {begun}.")
        assert TimelineRun.objects.open().count() == RunEntry.objects.count() == 17
        shown = Trip.objects.values_list("status", "state").distinct()
        assert set(shown) == {("open", "PLANNED"), ("a=b", "UNDER_WAY"), ("done", "PLANNED")}
        emit("trip.arrived", Trip.objects.filter(status="a=b").first())

    def test_takes_those_at_an_end_along_if_told_to(self):
        fill()

        adopt(*MAPPED, "--apply", "--with-ended", "--filter", "status__in=done,open")

        assert TimelineRun.objects.open().count() == 12
        assert Trip.objects.filter(state="ARRIVED", status="done").count() == 3

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (["--map", "open"], "--map 'open': give VALUE=STATE"),
            (["--map", "open=PLANNED", "--map", "open=ARRIVED"], "--map names 'open' twice"),
            (["--filter", "note__isnull=maybe"], "filter: does not fit"),
            (["--map", "x=PLANNED", "--apply", "--batch", "0"], "batch_size"),
        ],
    )
    def test_is_told_what_it_says_wrongly(self, options, said):
        with pytest.raises(CommandError, match=said):
            adopt(*options)

    def test_that_says_less_looks_at_all(self):
        Trip.objects.create(status="DELAYED")

        assert adopt("--filter", "note__isnull=false")[1].split() == ["'DELAYED'", "DELAYED", "1"]

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (["--filter", "status__regex=("], r"filter: does not fit testapp\.Trip"),
            (["--filter", "nofield=1"], r"filter: does not fit testapp\.Trip"),
            (["--filter", "id__gt=1" + "0" * 30 + ".5"], r"filter: does not fit testapp\.Trip"),
            (["--filter", "status=\udcff"], r"--filter .*udcff.* is no text in UTF-8"),
            (["--map", "\udcff=PLANNED"], r"--map .*udcff.* is no text in UTF-8"),
            (["--database", "nope"], r"argument --database: 'nope' is no database here. Give one of default"),
            (["--database", "\udcff"], r"argument --database: '\\udcff' is no database here"),
        ],
    )
    def test_is_told_which_option_the_database_does_not_take(self, options, said):
        Trip.objects.create(status="PLANNED")

        with pytest.raises(CommandError, match=said):
            adopt(*options)


class Shipping(Machine):
    """Has a task at a time that the row says."""

    entity = "testapp.Order"
    initial = "new"
    table = {"new": {"order.paid": "paid"}, "paid": {}}

    @task(at("ships_at"))
    def ship(self, order): ...


class TestAShopWithADateThatNobodyMeant:
    def test_is_told_which_row_and_that_those_before_it_stand(self):
        orders = [Order.objects.create(ships_at=timezone.now()) for _ in range(5)]
        Order.objects.filter(pk=orders[3].pk).update(ships_at=timezone.now().replace(year=9500))
        options = ["shipping", "--from", "paid", "--map", "False=new", "--apply", "--batch", "2"]

        with only_timelines(Shipping):
            with pytest.raises(CommandError, match=rf"^testapp.order {orders[3].pk}: ships_at: .* before it stands"):
                call_command("timeline_adopt_machine", *options)
            begun = TimelineRun.objects.count()
            Order.objects.filter(pk=orders[3].pk).update(ships_at=timezone.now())
            call_command("timeline_adopt_machine", *options)

        assert begun == 2
        assert TimelineRun.objects.count() == 5
