"""What an entity says about time: its anchors, its zone, its language; and the plan that follows."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.testapp.models import Order
from timeline import Timeline, after, at, task
from timeline.exceptions import DateOutOfRange, InvalidInput, NaiveDatetime
from timeline.models import TimelineRun
from timeline.models.facts import anchors_of, facts_in, language_of, moment_in, plan_of, zone_of
from timeline.planning import Create, plan

BERLIN, TOKYO = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Tokyo")


class Delivery(Timeline):
    entity = "testapp.Order"
    time_zone = "zone"
    language = "language"

    @task(at("ships_at"))
    def ship(self, order): ...

    @task(after("due_on", days=1))
    def remind(self, order): ...

    @task(after(days=3))
    def ask(self, order): ...


class Sweep(Timeline):
    """About no entity; so it names no field of one."""

    @task(after(days=1))
    def sweep(self): ...


DELIVERY, SWEEP = Delivery.definition, Sweep.definition


class TestZoneOf:
    def test_is_the_one_that_the_entity_names(self):
        assert zone_of(DELIVERY, Order(zone="Asia/Tokyo")) == TOKYO

    @pytest.mark.parametrize("zone", ["", "Nowhere/Land", "../etc", None])
    def test_is_the_sites_where_it_names_none(self, settings, zone):
        settings.TIME_ZONE = "Europe/Berlin"

        assert zone_of(DELIVERY, Order(zone=zone)) == ZoneInfo("Europe/Berlin")

    def test_may_be_a_zone_itself(self):
        assert zone_of(DELIVERY, Order(zone=TOKYO)) is TOKYO

    @pytest.mark.parametrize(("definition", "entity"), [(SWEEP, None), (SWEEP, Order(zone="Asia/Tokyo"))])
    def test_is_the_sites_where_no_field_is_named(self, definition, entity):
        assert zone_of(definition, entity) == ZoneInfo("UTC")


class TestLanguageOf:
    @pytest.mark.parametrize(
        ("entity", "code"), [(Order(language="de"), "de"), (Order(), ""), (Order(language=None), ""), (None, "")]
    )
    def test_is_what_the_entity_names_or_empty(self, entity, code):
        assert language_of(DELIVERY, entity) == code

    def test_is_empty_where_no_field_is_named(self):
        assert language_of(SWEEP, Order(language="de")) == ""


class TestAnchorsOf:
    def test_are_the_fields_that_tasks_count_from(self, now):
        order = Order(ships_at=now, due_on=date(2026, 5, 1), zone="Asia/Tokyo")

        assert anchors_of(DELIVERY, order) == {"ships_at": now, "due_on": datetime(2026, 4, 30, 15, tzinfo=UTC)}

    def test_are_read_of_what_was_given_as_text(self):
        """An instance that was never read holds what it was given."""
        order = Order(ships_at="2026-05-01T09:00:00+00:00", due_on="2026-05-01")

        assert anchors_of(DELIVERY, order) == {
            "ships_at": datetime(2026, 5, 1, 9, tzinfo=UTC),
            "due_on": datetime(2026, 5, 1, tzinfo=UTC),
        }

    def test_are_none_that_are_not_set(self):
        assert anchors_of(DELIVERY, Order()) == {"ships_at": None, "due_on": None}
        assert anchors_of(SWEEP, None) == {}

    @pytest.mark.parametrize(
        ("ships_at", "error"),
        [
            (datetime(2026, 5, 1), NaiveDatetime),  # noqa: DTZ001 (that is the case)
            (datetime(9001, 1, 1, tzinfo=UTC), DateOutOfRange),
        ],
    )
    def test_that_are_no_proper_times_are_refused_by_name(self, ships_at, error):
        with pytest.raises(error) as refused:
            anchors_of(DELIVERY, Order(ships_at=ships_at))

        assert refused.value.field == "ships_at"


class TestMomentIn:
    def test_is_the_midnight_of_a_date_in_the_entitys_zone(self):
        order = Order(due_on=date(2026, 5, 1), zone="Asia/Tokyo")

        assert moment_in("due_on", DELIVERY, order) == datetime(2026, 5, 1, tzinfo=TOKYO)

    def test_is_refused_where_it_is_not_set_and_names_the_entity(self):
        with pytest.raises(InvalidInput, match=r"due_on of testapp\.order 7 is not set") as refused:
            moment_in("due_on", DELIVERY, Order(pk=7))

        assert refused.value.field == "started_at"


class TestFactsIn:
    def times(self, planned):
        assert all(isinstance(change, Create) for change in planned.changes)
        return {change.task_name: change.times for change in planned.changes}

    def test_counts_from_the_start_and_from_the_entitys_fields(self, now):
        order = Order(ships_at=now + timedelta(days=9), due_on=date(2026, 3, 29), zone="Europe/Berlin")

        planned = plan(DELIVERY, started_at=now - timedelta(days=1), rows=(), **facts_in(DELIVERY, order), now=now)
        times = self.times(planned)

        assert {name: planned.nominal_at for name, planned in times.items()} == {
            "ship": now + timedelta(days=9),
            "remind": datetime(2026, 3, 30, tzinfo=BERLIN),  # 23 hours later.
            "ask": now + timedelta(days=2),
        }

    def test_remembers_the_day_of_a_date_only(self, now):
        order = Order(ships_at=now, due_on=date(2026, 5, 1))

        times = self.times(plan(DELIVERY, started_at=now, rows=(), **facts_in(DELIVERY, order), now=now))

        assert {name: planned.anchor_date for name, planned in times.items()} == {
            "ship": None,
            "remind": date(2026, 5, 1),
            "ask": None,
        }


class TestPlanOf:
    def test_counts_from_the_start_of_the_run(self, now):
        run, order = TimelineRun(started_at=now - timedelta(days=1)), Order(ships_at=now)

        planned = plan_of(run, DELIVERY, order, [], now=now)

        assert planned == plan(DELIVERY, started_at=run.started_at, rows=(), **facts_in(DELIVERY, order), now=now)
