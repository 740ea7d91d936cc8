"""The inventory: what is declared, and how it went."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from project.accounts.timelines import Trial
from tests.testapp.models import Order
from timeline import Discard, Timeline, after, after_run, created, daily, step, task
from timeline.reading.inventory import inventory, undocumented
from timeline.registry import registry
from timeline.shortcuts import redrive, start
from timeline.testing import StoryClock, only_timelines

NOW = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)


class Delivery(Timeline):
    """
    Ships what was ordered | and tells.

    More that nobody reads in a list.
    """

    entity = "testapp.Order"
    starts_on = ("order.placed", created())
    exits = {"order.closed": "closed"}

    @task(after(days=1), atomic=False)
    def ship(self, order):
        """Give it to the carrier."""
        self.label()
        if order.note == "discard":
            raise Discard("no such address")

    @step
    def label(self):
        """Print the label."""

    @task()
    def call(self, order): ...


class Settlement(Timeline):
    """Settles."""

    starts_on = daily("02:00", zone="Europe/Berlin")

    @task(after())
    def settle(self):
        """Settle all."""


class Report(Timeline):
    shadow = True
    starts_on = after_run(Settlement)

    @task(after())
    def report(self): ...


@pytest.fixture(autouse=True)
def clock(db):
    with only_timelines(Delivery, Settlement, Report), StoryClock(NOW) as clock:
        yield clock


def listed():
    return {each.name: each for each in inventory(now=NOW, using="default")}


class TestInventory:
    def test_tells_what_is_declared(self):
        found = listed()

        assert list(found) == ["delivery", "report", "settlement"]
        delivery = found["delivery"]
        assert delivery.doc == "Ships what was ordered | and tells."
        assert [(start.kind, start.said) for start in delivery.starts] == [
            ("event", "order.placed"),
            ("created", "a new row of testapp.order"),
        ]
        assert delivery.exits == {"order.closed": "closed"}
        assert [(task.name, task.when, task.doc) for task in delivery.tasks] == [
            ("ship", "1 day after the start of the run", "Give it to the carrier."),
            ("call", "", ""),
        ]
        assert [(step.name, step.doc) for step in delivery.steps] == [("label", "Print the label.")]

    def test_tells_when_the_clock_starts_it_next_and_what_follows(self):
        [by_clock] = listed()["settlement"].starts
        [following] = listed()["report"].starts

        assert by_clock.said == "every day at 02:00 in Europe/Berlin, next 25 November 2026 02:00"
        assert by_clock.next_at == datetime(2026, 11, 25, 1, 0, tzinfo=UTC)
        assert (following.kind, following.said) == ("after_run", "after a run of settlement (completed)")
        assert listed()["report"].shadow is True

    def test_tells_how_tasks_went(self, clock):
        for note in ("", "", "discard"):
            start("delivery", Order.objects.create(note=note))
            clock.advance(days=2)

        ship, call = listed()["delivery"].tasks
        assert (ship.last_end, ship.last_reason, ship.dead_letters, ship.seconds) == ("discarded", "handler", 1, 0.0)
        assert ship.last_end_at == NOW + timedelta(days=5)
        assert (call.last_end_at, call.last_end, call.seconds, call.dead_letters) == (None, "", None, 0)

    def test_counts_no_dead_letter_that_was_redriven(self, clock):
        order = Order.objects.create(note="discard")
        run = start("delivery", order).run
        clock.advance(days=2)
        redrive(run.tasks.get(task_key="delivery.ship"), reason="mended")

        assert listed()["delivery"].tasks[0].dead_letters == 0

    def test_takes_two_statements_and_two_for_clocks_however_much_there_is(self, clock):
        for _ in range(12):
            start("delivery", Order.objects.create())
        clock.advance(days=2)

        with CaptureQueriesContext(connection) as asked:
            listed()

        assert len(asked) == 4

    def test_is_empty_where_there_are_no_timelines(self):
        with only_timelines():
            assert inventory(now=NOW, using="default") == []


class TestUndocumented:
    def test_names_what_has_no_docstring(self):
        assert undocumented([Delivery.definition, Report.definition]) == ["delivery.call", "report", "report.report"]

    def test_finds_nothing_in_the_demo(self):
        with only_timelines():
            registry.discover()
            demo = [known for known in registry if known.cls.__module__.startswith("project.")]

        assert demo
        assert undocumented(demo) == []

    def test_finds_what_somebody_left_out_of_the_demo(self, monkeypatch):
        monkeypatch.setattr(Trial.definition.tasks["remind"].method, "__doc__", None)

        assert undocumented([Trial.definition]) == ["trial.remind"]


def printed(*options):
    out = StringIO()
    call_command("timeline_inventory", *options, stdout=out)
    return out.getvalue()


class TestCommand:
    def test_prints_a_line_for_each_and_what_to_call_next(self, monkeypatch):
        monkeypatch.delenv("COLUMNS", raising=False)

        _heads, *lines, more = printed().splitlines()

        assert [line.split()[0] for line in lines] == ["delivery", "report", "settlement"]
        assert "every day at" in lines[-1]
        assert max(map(len, lines)) <= 80
        assert more == "More of one: manage.py timeline_inventory NAME"

    @pytest.mark.parametrize("columns", [40, 80, 120])
    def test_prints_one_that_is_named_as_wide_as_the_terminal(self, monkeypatch, columns):
        monkeypatch.setenv("COLUMNS", str(columns))

        text = printed("delivery")

        for said in ("delivery", "order.placed", "ship: ", "label", "order.closed", "has not ended yet"):
            assert said in text
        assert "settlement" not in text
        assert max(map(len, text.splitlines())) <= columns

    def test_names_the_command_for_its_dead_letters(self, make_task):
        make_task(task_key="delivery.ship", state="discarded")

        assert printed("delivery").splitlines()[-1] == "Next: manage.py timeline_dead_letters"
        assert "dead letters: 1" in printed("delivery")

    def test_says_which_is_meant(self):
        with pytest.raises(CommandError, match="delivery"):
            printed("delivry")

    def test_prints_markdown(self):
        lines = printed("--markdown").splitlines()

        assert "## delivery" in lines
        assert "Ships what was ordered \\| and tells." in lines
        assert "- Exits: order.closed → closed" in lines
        assert "| ship: Give it to the carrier. | 1 day after the start of the run | – | – | – |" in lines

    def test_prints_plain_data(self, clock):
        start("delivery", Order.objects.create())
        clock.advance(days=2)
        delivery, _report, settlement = json.loads(printed("--json"))

        assert delivery["tasks"][0]["last_end"] == "completed"
        assert settlement["starts"][0]["kind"] == "clock"
