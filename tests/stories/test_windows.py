"""A shop calls nobody at night, and sends nothing on a weekend that nobody would read."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.utils import translation

from tests.testapp.models import Order
from timeline import Machine, Retry, Timeline, after, every, never, on, task, window
from timeline.exceptions import DefinitionError, InvalidInput
from timeline.features.sweep.verbs import begin_round, sweep
from timeline.models import ScheduledTask
from timeline.shortcuts import emit_many, enroll, explain, foreseen, hold, move, start, start_many
from timeline.testing import only_timelines

OFFICE = {"days": "mon-fri", "zone": "Europe/Berlin"}
FRIDAY = datetime(2026, 11, 27, 16, 0, tzinfo=UTC)  # Five in the afternoon in Berlin.
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
FAILING = []
UNREADABLE = []


class Care(Timeline):
    entity = "testapp.Order"

    @task(
        after(hours=5),
        window=window("09:00-17:00", **OFFICE),
        expires=timedelta(hours=4),
        retry=Retry(base=6 * HOUR, jitter=0),
    )
    def call(self, order):
        if FAILING:
            raise RuntimeError(FAILING.pop())

    @task(after(call, hours=9), window=window("09:00-17:00", **OFFICE))
    def call_again(self, order): ...

    @task(after(days=2), window=window("09:00-17:00", outside="previous", **OFFICE))
    def prepare(self, order): ...

    @task(after(days=1), window=window("09:00-17:00", outside="cancel", **OFFICE))
    def greet(self, order): ...

    @task(after(days=3), window=window("08:00-20:00"))
    def anywhere(self, order): ...

    @task(every(hours=20, most=3), window=window("09:00-17:00", **OFFICE))
    def look(self, order): ...


class LongerCare(Timeline):
    """The same, when its office is open for longer."""

    name = "care"
    entity = "testapp.Order"

    @task(after(days=2), window=window("09:00-19:00", outside="previous", **OFFICE))
    def prepare(self, order): ...


class Office(Timeline):
    name = "office"
    entity = "testapp.Order"

    @task(after(hours=5), window=window("09:00-17:00", **OFFICE))
    def call(self, order): ...


class Later(Timeline):
    """It opens later, and at weekends it does not."""

    name = "office"
    entity = "testapp.Order"

    @task(after(hours=5), window=window("12:00-17:00", **OFFICE))
    def call(self, order): ...


class AtNight(Timeline):
    """It is open longer."""

    name = "office"
    entity = "testapp.Order"

    @task(after(hours=5), window=window("09:00-23:00", **OFFICE))
    def call(self, order): ...


class Anytime(Timeline):
    """It has no hours."""

    name = "office"
    entity = "testapp.Order"

    @task(after(hours=5))
    def call(self, order): ...


OTHER = {"Later": Later, "AtNight": AtNight, "Anytime": Anytime}


def is_holiday(day):
    if UNREADABLE:
        raise LookupError(UNREADABLE[0])
    return False


class ByCalendar(Timeline):
    """Whose holidays somebody else knows."""

    entity = "testapp.Order"

    @task(after(hours=1), window=window("00:00-24:00", holidays=is_holiday), retry=Retry(base=HOUR, jitter=0))
    def call(self, order):
        raise RuntimeError("no answer")

    @task(after(hours=1))
    def write(self, order): ...

    @task(after(write, hours=1), window=window("00:00-24:00", holidays=is_holiday))
    def write_again(self, order): ...


@pytest.fixture
def rows(db, clock):
    """The rows of an order that came on Friday at five; by name."""
    FAILING.clear()
    clock.set(FRIDAY)
    with only_timelines(Care):
        start(Care, Order.objects.create())
        yield lambda name, **more: ScheduledTask.objects.filter(task_key=f"care.{name}", **more).latest("pk")


def run(command, *options):
    """Call a command; what it printed as JSON, if it did."""
    out = StringIO()
    with suppress(SystemExit):
        call_command(command, *options, stdout=out)
    return json.loads(out.getvalue()) if "--json" in options else None


def swept(now):
    begin_round(using="default")
    while sweep(now=now, using="default").left:
        pass


def berlin(moment):
    return f"{moment + HOUR:%a %H:%M}"


class TestAWeekend:
    def test_moves_a_call_to_monday_and_keeps_what_time_it_was_for(self, rows):
        row = rows("call")

        assert (berlin(row.nominal_at), berlin(row.scheduled_at)) == ("Fri 22:00", "Mon 09:00")
        assert berlin(row.expires_at) == "Mon 13:00"
        said = explain(row)
        assert "moved from 2026-11-27 21:00" in said
        assert "within mon-fri 09:00-17:00" in said

    def test_moves_what_follows_as_well(self, rows, clock):
        clock.set(datetime(2026, 11, 30, 8, 30, tzinfo=UTC))
        clock.run_due()

        assert rows("call").state == "completed"
        assert berlin(rows("call_again").scheduled_at) == "Tue 09:00"

    def test_is_avoided_by_what_is_prepared_before(self, rows, clock):
        """The last opening before Sunday at five begins on Friday at nine, which has passed: so it is Monday."""
        assert berlin(rows("prepare").scheduled_at) == "Mon 09:00"
        clock.set(FRIDAY - DAY)
        start(Care, Order.objects.create())

        assert berlin(rows("prepare").scheduled_at) == "Fri 09:00"

    def test_cancels_a_greeting_that_nobody_would_read(self, rows, clock):
        assert berlin(rows("greet").scheduled_at) == "Sat 17:00"
        clock.set(FRIDAY + DAY)
        clock.run_due()

        row = rows("greet")
        assert (row.state, row.reason_code, row.reason) == (
            "cancelled",
            "guard",
            "its time is outside of mon-fri 09:00-17:00",
        )

    def test_is_no_matter_for_what_has_hours_on_all_days(self, rows):
        assert rows("anywhere").scheduled_at == rows("anywhere").nominal_at

    def test_lets_a_series_go_on_by_its_own_times(self, rows, clock):
        assert berlin(rows("look").scheduled_at) == "Mon 09:00"
        clock.set(datetime(2026, 11, 30, 8, 0, tzinfo=UTC))
        clock.run_due()

        assert rows("look").occurrence == "2"
        assert berlin(rows("look").scheduled_at) in ("Mon 09:00", "Tue 09:00")


@pytest.mark.timeline(raises=False)
class TestARetry:
    def test_waits_until_the_window_opens(self, rows, clock):
        FAILING.append("no answer")
        clock.set(datetime(2026, 11, 30, 15, 0, tzinfo=UTC))
        ScheduledTask.objects.update(expires_at=None)
        clock.run_due()

        assert (rows("call").state, berlin(rows("call").scheduled_at)) == ("retryable", "Tue 09:00")


class TestWhoeverDecides:
    def test_may_move_it_outside_and_no_sweep_takes_it_back(self, rows, clock):
        move(rows("call"), at=FRIDAY + 6 * HOUR, reason="they asked for it")
        move(rows("greet"), at=FRIDAY + DAY + HOUR, reason="they read at night")
        swept(FRIDAY)
        clock.set(FRIDAY + DAY + HOUR)
        clock.run_due()

        assert [(rows(name).state, berlin(rows(name).scheduled_at)) for name in ("call", "greet")] == [
            ("cancelled", "Fri 23:00"),
            ("completed", "Sat 18:00"),
        ]

    def test_is_not_disturbed_by_a_sweep_that_looks_later(self, rows, clock):
        before = list(ScheduledTask.objects.order_by("pk").values("pk", "seq", "scheduled_at"))
        clock.set(FRIDAY + DAY / 2)
        swept(FRIDAY + DAY / 2)

        assert list(ScheduledTask.objects.order_by("pk").values("pk", "seq", "scheduled_at")) == before


class TestOtherHours:
    """Rows that were planned by other hours follow those there are now, but for what somebody decided."""

    @pytest.fixture
    def called(self, db, clock):
        """A call for Friday at ten in the evening, due on Monday at nine; gives its row."""
        clock.set(FRIDAY)
        with only_timelines(Office):
            start(Office, Order.objects.create())
        return ScheduledTask.objects.get()

    @pytest.mark.parametrize(
        ("other", "then"), [("Later", "Mon 12:00"), ("AtNight", "Fri 22:00"), ("Anytime", "Fri 22:00")]
    )
    def test_are_shown_as_drift_and_then_followed(self, called, other, then):
        with only_timelines(OTHER[other]):
            [shown] = run("timeline_plan", "--json")["timelines"]
            assert (shown["changed"], shown["tasks"]["call"]["moved"]) == (1, 1)
            run("timeline_apply")
            assert not run("timeline_plan", "--json")["timelines"][0]["changed"]

        called.refresh_from_db()
        assert (berlin(called.nominal_at), berlin(called.scheduled_at)) == ("Fri 22:00", then)
        assert called.log.latest("seq").reason == "its window or its spread changed"

    def test_are_followed_by_a_sweep(self, called):
        with only_timelines(Later):
            swept(FRIDAY)

        called.refresh_from_db()
        assert berlin(called.scheduled_at) == "Mon 12:00"

    def test_are_followed_where_there_were_none(self, db, clock):
        clock.set(FRIDAY)
        with only_timelines(Anytime):
            start(Anytime, Order.objects.create())

        with only_timelines(Office):
            swept(FRIDAY)

        assert berlin(ScheduledTask.objects.get().scheduled_at) == "Mon 09:00"

    def test_are_not_followed_by_what_is_to_be_kept(self, called):
        with only_timelines(Later):
            run("timeline_apply", "office", "--keep", "call", "--reason", "told them")
            swept(FRIDAY)
            assert not run("timeline_plan", "--json")["timelines"][0]["changed"]

        called.refresh_from_db()
        assert berlin(called.scheduled_at) == "Mon 09:00"

    def test_are_not_followed_by_what_a_person_moved(self, called):
        move(called, at=FRIDAY + 9 * HOUR, reason="they asked for it")

        with only_timelines(Later):
            swept(FRIDAY)

        called.refresh_from_db()
        assert called.scheduled_at == FRIDAY + 9 * HOUR

    def test_are_not_followed_by_what_was_spread_when_it_was_enrolled(self, db, clock):
        clock.set(FRIDAY)
        with only_timelines(Office):
            enroll(Office, [Order.objects.create()], spread=6 * HOUR)
        row = ScheduledTask.objects.get()
        before = row.scheduled_at

        with only_timelines(Later):
            swept(FRIDAY)

        row.refresh_from_db()
        assert row.scheduled_at == before != row.planned_at

    def test_are_not_followed_by_rows_of_an_older_version(self, called):
        ScheduledTask.objects.update(planned_at=None)

        with only_timelines(Later):
            swept(FRIDAY)

        called.refresh_from_db()
        assert berlin(called.scheduled_at) == "Mon 09:00"

    def test_leave_what_is_due_at_its_time_and_let_it_run_then(self, db, clock):
        """It is for a Saturday, and due on the Friday before: hours that have changed since do not put it off."""
        clock.set(FRIDAY - DAY)
        with only_timelines(Care):
            start(Care, Order.objects.create())
        row = ScheduledTask.objects.get(task_key="care.prepare")

        with only_timelines(LongerCare):
            clock.set(row.scheduled_at)
            clock.run_due()

        row.refresh_from_db()
        assert (berlin(row.nominal_at), berlin(row.finished_at), row.state) == ("Sat 17:00", "Fri 09:00", "completed")


class TestAHold:
    def test_that_shifts_leaves_within_its_window_what_was_so(self, rows, clock):
        """What somebody has moved to the night moves on by how long it was held."""
        clock.set(datetime(2026, 11, 30, 7, 0, tzinfo=UTC))
        call, greet = rows("call"), rows("prepare")
        move(greet, at=clock.now + 12 * HOUR, reason="they asked for it")
        hold(Order.objects.get(), until=clock.now + 10 * HOUR, then="shift", reason="moving house")

        clock.set(clock.now + 10 * HOUR)
        clock.run_due()

        call.refresh_from_db()
        greet.refresh_from_db()
        assert [berlin(row.scheduled_at) for row in (call, greet)] == ["Tue 09:00", "Tue 06:00"]


@pytest.mark.timeline(raises=False)
class TestACalendarThatFails:
    """Its function of a date raises."""

    @pytest.fixture
    def closed(self, db, clock):
        clock.set(FRIDAY)
        UNREADABLE.clear()
        with only_timelines(ByCalendar):
            start(ByCalendar, Order.objects.create())
            UNREADABLE.append("the calendar is not there")
            yield

    def test_keeps_no_outcome_from_being_recorded(self, closed, clock):
        clock.advance(hours=1)
        clock.run_due()

        states = dict(ScheduledTask.objects.values_list("task_key", "state"))
        assert states == {"by_calendar.call": "retryable", "by_calendar.write": "completed"}
        assert ScheduledTask.objects.get(state="retryable").scheduled_at == clock.now + HOUR

    def test_refuses_what_is_to_be_planned_and_says_why(self, closed):
        with pytest.raises(InvalidInput, match=r"nobody can say whether 2026-11-26 is a holiday: .*not there"):
            start(ByCalendar, Order.objects.create())


class TestACalendarThatAsksTheDatabase:
    """By a query that looks at what it was given before it asks for it, which nothing that was sent ahead can answer."""

    MANY = 150  # More than a portion.

    @pytest.fixture
    def hours(self):
        def is_free(day):
            return bool(list(Order.objects.raw("SELECT * FROM testapp_order WHERE note = %s", [day.isoformat()])))

        return window("09:00-17:00", holidays=is_free)

    @pytest.fixture
    def orders(self, db):
        return Order.objects.bulk_create([Order() for _ in range(self.MANY)])

    @pytest.mark.parametrize("begin", [start_many, lambda _name, orders: emit_many("calling.begun", orders)])
    def test_is_asked_for_many_as_for_one(self, hours, orders, begin):
        class Calling(Timeline):
            entity = "testapp.Order"
            starts_on = "calling.begun"

            @task(after(), window=hours)
            def call(self, order): ...

        with only_timelines(Calling):
            begin("calling", orders)

        assert ScheduledTask.objects.filter(task_key="calling.call").count() == self.MANY

    def test_is_asked_when_many_machines_move(self, hours, orders):
        class Lamp(Machine):
            entity = "testapp.Order"
            initial = "off"
            table = {"off": {"press": "on"}, "on": {"break": "broken"}, "broken": {}}
            timers = {"off": never}

            @task(on("on"), window=hours)
            def warn(self, order): ...

        with only_timelines(Lamp):
            start_many("lamp", orders)
            emit_many("press", orders)

        assert ScheduledTask.objects.filter(task_key="lamp.warn").count() == self.MANY


class TestAForeseenCall:
    def test_is_shown_when_it_would_be(self, rows):
        order = Order.objects.get()
        ahead = {item.task_key: item.expected_at for item in foreseen(order)}

        assert berlin(ahead["care.call_again"]) == "Tue 09:00"


class TestADeclaration:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"window": "09:00-17:00"}, "has window = '09:00-17:00'"),
            ({"window": window("9-17")}, "has a window with '9-17'"),
            (
                {"window": window("09:00-17:00", outside="cancel"), "spread": HOUR},
                'has spread, and a window with outside="cancel"',
            ),
            ({"when": None, "window": window("09:00-17:00")}, "has a window, but no schedule"),
        ],
    )
    def test_that_is_wrong_is_refused(self, options, said):
        with pytest.raises(DefinitionError, match=said.replace("(", r"\(")):

            class Wrong(Timeline):
                entity = "testapp.Order"

                @task(**{"when": after(days=1)} | options)
                def call(self, order): ...


class TestAGerman:
    def test_reads_why_in_german(self, rows, clock):
        clock.set(FRIDAY + DAY)
        clock.run_due()

        with translation.override("de"):
            assert "ihre Zeit liegt außerhalb von mon-fri 09:00-17:00" in explain(rows("greet"))


class TestASpreadThatIsLongerThanTheHours:
    """Each is due within the hours and within the spread, at a moment of its own: none together, none after it has expired."""

    @pytest.mark.parametrize(
        ("hours", "spread", "last"),
        [
            (("09:00-10:00",), 2 * HOUR, 10),
            (("09:00-10:00", "11:00-12:00"), 3 * HOUR, 12),
            (("09:00-10:00", "11:00-12:00"), HOUR, 10),
        ],
        ids=["over the end", "over a break", "within"],
    )
    def test_is_over_the_hours_that_lie_within_it(self, db, clock, hours, spread, last):
        clock.set(FRIDAY)

        class Rush(Timeline):
            entity = "testapp.Order"

            @task(after(hours=5), window=window(*hours, **OFFICE), spread=spread, expires=spread + HOUR)
            def call(self, order): ...

        with only_timelines(Rush):
            start_many(Rush, Order.objects.bulk_create(Order() for _ in range(60)))

        rows = ScheduledTask.objects.all()
        due = [row.scheduled_at for row in rows]
        opens = FRIDAY + timedelta(days=2, hours=16)
        assert {(moment + HOUR).hour for moment in due} <= {9, 11}
        assert len(set(due)) == 60
        assert opens <= min(due)
        assert max(due) < opens + min(spread, (last - 9) * HOUR)
        assert all(row.scheduled_at < row.expires_at for row in rows)
        assert {row.planned_at for row in rows} == set(due)
        in_the_second_half = sum(moment >= sorted(due)[0] + (max(due) - min(due)) / 2 for moment in due)
        assert 15 < in_the_second_half < 45


class TestASpreadOfWhatIsEnrolled:
    """It is enrolled in the afternoon, and nobody is called in the night for that."""

    @pytest.mark.parametrize(
        ("hours_ago", "opens"),
        [(0, FRIDAY + timedelta(days=2, hours=16)), (5, FRIDAY - HOUR), (8, FRIDAY - HOUR)],
        ids=["to come", "due now", "due already"],
    )
    def test_keeps_to_the_hours(self, db, clock, hours_ago, opens):
        clock.set(FRIDAY - HOUR)
        orders = Order.objects.bulk_create(Order() for _ in range(30))

        with only_timelines(Office):
            enroll(Office, orders, started_at=FRIDAY - HOUR - hours_ago * HOUR, spread=72 * HOUR)

        due = sorted(row.scheduled_at for row in ScheduledTask.objects.all())
        assert all(9 <= (moment + HOUR).hour < 17 for moment in due)
        assert {f"{moment + HOUR:%a}" for moment in due} <= {"Fri", "Mon", "Tue", "Wed"}
        assert len(set(due)) == 30
        assert opens <= due[0]
        assert due[-1] < opens + 72 * HOUR

    def test_calls_off_what_is_outside_where_the_window_says_so(self, db, clock):
        class Strict(Timeline):
            entity = "testapp.Order"

            @task(after(hours=5), window=window("09:00-17:00", outside="cancel", **OFFICE))
            def call(self, order): ...

        clock.set(FRIDAY - HOUR)
        with only_timelines(Strict):
            enroll(Strict, [Order.objects.create()], spread=6 * HOUR)
            clock.advance(hours=24)

        assert ScheduledTask.objects.get().state == "cancelled"
