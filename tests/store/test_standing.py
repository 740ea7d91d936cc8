"""Standing: what the database rules out, the planner would not change; whatever the planner would change is in doubt."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import partial
from random import Random

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from tests.asking import WHOLE
from tests.testapp.models import Country, Order, Parcel, Seller, Story
from timeline import Timeline, after, at, before, every, task, window
from timeline.features.plans import differ
from timeline.features.plans.differ import differences
from timeline.features.plans.drift import drifted
from timeline.features.plans.drift_query import in_doubt, pages_of_open_runs
from timeline.ids import uuid7
from timeline.lifecycle import OPEN, ReasonCode, State
from timeline.models import EntityRef, ScheduledTask, TimelineRun
from timeline.models.entities import label_of
from timeline.models.facts import plan_of
from timeline.planning import Create
from timeline.registry import registry
from timeline.shortcuts import start
from timeline.store.new_rows import new_task
from timeline.testing import only_timelines

NOW = datetime(2026, 3, 20, 9, 0, tzinfo=UTC)
DAY = timedelta(days=1)
ZONES = ["UTC", "Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia", "Africa/Casablanca"]


class Care(Timeline):
    """Roots of all kinds, and followers of followers."""

    name = "care"
    entity = "testapp.Order"

    @task(before("ships_at", days=5))
    def remind(self, order): ...

    @task(at("ships_at"))
    def ship(self, order): ...

    @task(after("due_on", months=1, hours=2))
    def dun(self, order): ...

    @task(after(days=30))
    def ask(self, order): ...

    @task(after(ship, days=2))
    def follow(self, order): ...

    @task(after(follow, ended=True))
    def close(self, order): ...

    @task(after(remind, hours=1), aside=True)
    def note(self, order): ...


class Later(Timeline):
    """A release later."""

    name = "care"
    entity = "testapp.Order"

    @task(before("ships_at", days=4))
    def remind(self, order): ...

    @task(at("ships_at"))
    def ship(self, order): ...

    @task(after("due_on", hours=1), aside=True)
    def dun(self, order): ...

    @task(after(ship, days=2))
    def follow(self, order): ...

    @task(after(ship, ended=True))
    def close(self, order): ...

    @task()
    def note(self, order): ...


class Zoned(Timeline):
    """Each in the time zone of its own."""

    name = "care"
    entity = "testapp.Order"
    time_zone = "zone"

    @task(before("ships_at", days=5))
    def remind(self, order): ...

    @task(at("ships_at"))
    def ship(self, order): ...


class Exact(Timeline):
    """Time zones do not matter to it."""

    name = "care"
    entity = "testapp.Order"
    time_zone = "zone"

    @task(before("ships_at", hours=5))
    def remind(self, order): ...

    @task(after(hours=7))
    def ask(self, order): ...


class Post(Timeline):
    name = "care"
    entity = "testapp.Parcel"

    @task(at("arrives_at"))
    def ship(self, parcel): ...

    @task(after(ship))
    def follow(self, parcel): ...


class Joining(Timeline):
    name = "care"
    entity = "testapp.Country"

    @task(at("joins_on"))
    def ship(self, country): ...

    @task(before("joins_on", months=2))
    def remind(self, country): ...


class Nobodys(Timeline):
    """Of the system."""

    name = "care"

    @task(after(days=3))
    def ask(self): ...

    @task(after(ask, hours=1))
    def follow(self): ...


EVERY = [Care, Later, Zoned, Exact, Post, Joining, Nobodys]
MODELS = {"testapp.order": Order, "testapp.parcel": Parcel, "testapp.country": Country}


class World:
    """Runs with rows as they come about, and then a mishap here and there."""

    def __init__(self, chance: Random, definition):
        self.chance, self.definition = chance, definition

    def moment(self):
        """Near enough to a change of the clocks that some are across it."""
        return self.chance.choice([None, NOW + self.chance.randint(-90, 90) * DAY + self.chance.choice(SHIFTS)])

    def entity(self, number):
        day = self.chance.choice([None, (NOW + self.chance.randint(-40, 40) * DAY).date()])
        match self.definition.label:
            case "testapp.order":
                return Order.objects.create(ships_at=self.moment(), due_on=day, zone=self.chance.choice(ZONES))
            case "testapp.parcel":
                return Parcel.objects.create(arrives_at=self.moment())
            case "testapp.country":
                return Country.objects.create(code=f"{self.chance.choice(CODES)} {number}", joins_on=day)
        return None

    def run(self, number):
        """A run whose rows were planned again and again, while some of them ended."""
        entity = self.entity(number)
        key = "" if entity is not None else str(number)
        ref = EntityRef(label_of(type(entity)), str(entity.pk)) if entity is not None else EntityRef("", "")
        run = TimelineRun.objects.create(
            timeline="care",
            entity_label=ref.label,
            entity_id=ref.id,
            key=key,
            started_at=NOW - self.chance.randint(0, 60) * DAY,
        )
        rows = []
        for _ in range(self.chance.randint(1, 5)):
            planned = plan_of(run, self.definition, entity, rows, now=NOW)
            for change in planned.changes:
                if isinstance(change, Create):
                    row = new_task(run, self.definition, change, key=uuid7(), now=NOW)
                    row.state, row.reason_code = State.SCHEDULED, ""
                    rows.append(row)
            for row in rows:
                if row.state in OPEN and self.chance.random() < 0.4:
                    self.end(row)
        if self.chance.random() < 0.5:
            rows = self.mishap(run, rows)
        ScheduledTask.objects.bulk_create(rows)
        return run

    def end(self, row):
        row.state, row.reason_code = self.chance.choice(ENDINGS)
        row.finished_at = NOW + self.chance.randint(-20, 0) * DAY + self.chance.choice(SHIFTS)

    def mishap(self, run, rows):
        """What nobody would do, and does."""
        if not rows:
            return rows
        row = self.chance.choice(rows)
        mishaps = [self.lose, self.name, self.end_otherwise, self.revise]
        for name in ("nominal_at", "anchor_value", "scheduled_at", "planned_at"):
            mishaps.append(partial(self.shift, name))
        self.chance.choice(mishaps)(row, rows)
        return rows

    def shift(self, name, row, _rows):
        before = getattr(row, name)
        setattr(row, name, before and before + self.chance.choice(SHIFTS))
        row.planned_at = self.chance.choice([None, row.planned_at, row.scheduled_at])
        row.anchor_date = self.chance.choice([row.anchor_date, None, date(2026, 3, 29)])

    def lose(self, row, rows):
        rows.remove(row)

    def name(self, row, rows):
        row.task_key = self.chance.choice([row.task_key, "care.gone", "other.remind", "care.ship"])
        row.occurrence = self.chance.choice(["", "x"])
        if any(other is not row and other.task_key == row.task_key for other in rows):
            rows.remove(row)

    def end_otherwise(self, row, _rows):
        if row.state in OPEN:
            row.state = self.chance.choice([State.AVAILABLE, State.RETRYABLE, State.ACTIVE])
            row.lease_expires_at = NOW + 100 * 365 * DAY if row.state == State.ACTIVE else None
        else:
            row.reason_code = self.chance.choice([*ReasonCode])

    def revise(self, row, rows):
        """It had ended once before."""
        row.revision += 5
        earlier = ScheduledTask(**{f.attname: getattr(row, f.attname) for f in ScheduledTask._meta.concrete_fields})
        earlier.id, earlier.revision, earlier.lease_expires_at = uuid7(), row.revision - 1, None
        self.end(earlier)
        rows.append(earlier)

    def edit(self):
        """What SQL does to entities."""
        model = MODELS.get(self.definition.label)
        for key in [] if model is None else list(model.objects.values_list("pk", flat=True)):
            rows, lot = model.objects.filter(pk=key), self.chance.random()
            if lot < 0.1:
                rows._raw_delete("default")
            elif lot < 0.3 and model is Order:
                rows.update(ships_at=self.moment(), zone=self.chance.choice(ZONES))
            elif lot < 0.4 and model is Order:
                rows.update(ships_at=self.chance.choice(FAR))
            elif lot < 0.4 and model is Parcel:
                rows.update(arrives_at=self.moment())
            elif lot < 0.4:
                rows.update(joins_on=date(2026, 3, self.chance.randint(1, 31)))


SHIFTS = [
    timedelta(0),
    timedelta(hours=1),
    timedelta(hours=-1),
    timedelta(microseconds=1),
    timedelta(hours=15, minutes=30),
    DAY,
]
CODES = ["a", "B c", '"%s', "{x}", "\\"]
FAR = [datetime(9001, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, tzinfo=UTC), datetime(2040, 7, 1, tzinfo=UTC)]
ENDINGS = [
    (State.COMPLETED, ReasonCode.DONE),
    (State.COMPLETED, ReasonCode.DONE),
    (State.COMPLETED, ReasonCode.SHADOW),
    (State.DISCARDED, ReasonCode.ERROR),
    (State.CANCELLED, ReasonCode.OPERATOR),
    (State.CANCELLED, ReasonCode.GUARD),
    (State.CANCELLED, ReasonCode.UNTIL),
    (State.CANCELLED, ReasonCode.PREDECESSOR),
]


def every_run():
    return list(TimelineRun.objects.open().order_by("pk"))


def refs(using="default"):
    return [ref for page in pages_of_open_runs(["care"], size=1000, using=using) for ref in page]


def doubtful(now=NOW):
    return set(in_doubt(refs(), now=now, using="default"))


@pytest.mark.django_db
class TestConformance:
    """Whatever the planner would change is in doubt, and what a plan counts is the same."""

    @examples(
        max_examples=60 if WHOLE else 25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(seed=st.integers(0, 2**32), cls=st.sampled_from(EVERY), zone=st.sampled_from(ZONES), released=st.booleans())
    def test_with_the_planner(self, seed, cls, zone, released, settings):
        settings.TIME_ZONE = zone
        world = World(Random(seed), cls.definition)  # noqa: S311 (no secret)
        with transaction.atomic():
            with only_timelines(cls):
                for number in range(12):
                    world.run(number)
                world.edit()
            settings.TIME_ZONE = world.chance.choice([zone, *ZONES])
            with only_timelines(Later if released and cls is Care else cls):
                wrong = {run.pk for run in drifted(every_run(), now=NOW, using="default")}
                said = doubtful()
                counted = self.counted()
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(differ, "in_doubt", lambda some, **_given: [ref.id for ref in some])
                    planned = self.counted()
            transaction.set_rollback(True)

        assert wrong <= said
        assert counted == planned

    def counted(self):
        [found] = list(differences([registry.timeline("care")], now=NOW, using="default"))
        return found["care"].as_data()


@pytest.fixture
def begun(clock, start_at):
    """Start a run: ``begun(Care, entity)``."""
    clock.set(NOW)

    def begin(cls, entity):
        with only_timelines(cls):
            start_at("care", entity, NOW)
        return TimelineRun.objects.latest("pk")

    return begin


def spread_care(**options):
    class Care(Timeline):
        name = "care"
        entity = "testapp.Order"

        @task(at("ships_at"), **options)
        def ship(self, order): ...

    return Care


class Weekly(Timeline):
    name = "care"
    entity = "testapp.Order"

    @task(every(days=7, most=9))
    def look(self, order): ...


class Hidden(Timeline):
    name = "care"
    entity = "testapp.Seller"

    @task(after(days=3))
    def look(self, seller): ...


class Stories(Timeline):
    """A child of another model, which has the field."""

    name = "care"
    entity = "testapp.Story"

    @task(before("goes_at", days=1))
    def ship(self, story): ...


@pytest.mark.django_db
class TestWhatStands:
    """Nothing of it is planned."""

    @pytest.mark.parametrize("cls", [Care, Later, Exact])
    def test_is_what_was_planned_of_an_order(self, cls, begun):
        begun(cls, Order.objects.create(ships_at=NOW + 20 * DAY, due_on=(NOW + 9 * DAY).date()))
        begun(cls, Order.objects.create(ships_at=NOW + 20 * DAY))

        with only_timelines(cls):
            assert doubtful() == set()

    def test_is_so_for_keys_of_each_kind(self, begun):
        for cls, entity in (
            (Post, Parcel.objects.create(arrives_at=NOW + DAY)),
            (Joining, Country.objects.create(code="a 'b\"", joins_on=NOW.date() + 200 * DAY)),
            (Stories, Story.objects.create(url="https://example.com/%s", goes_at=NOW + 9 * DAY)),
            (Nobodys, None),
        ):
            run = begun(cls, entity)
            with only_timelines(cls):
                assert doubtful() == set()
            TimelineRun.objects.filter(pk=run.pk).update(timeline="gone")

    def test_is_what_others_followed(self, begun, clock):
        run = begun(Post, Parcel.objects.create(arrives_at=NOW + DAY))
        with only_timelines(Post):
            clock.set(NOW + DAY)
            clock.run_due()

            assert run.tasks.filter(state="completed").exists()
            assert doubtful(NOW + DAY) == set()


@pytest.mark.django_db
class TestDoubt:
    @pytest.mark.parametrize(
        "changed",
        [
            {"nominal_at": NOW + 8 * DAY},
            {"anchor_value": None},
            {"scheduled_at": NOW + 8 * DAY, "planned_at": NOW + 8 * DAY},
            {"task_key": "care.gone"},
            {"occurrence": "7"},
        ],
    )
    def test_is_of_a_row_that_was_changed(self, changed, begun):
        run = begun(Post, Parcel.objects.create(arrives_at=NOW + 9 * DAY))
        with connection.cursor() as cursor:
            name = connection.ops.quote_name
            sets = ", ".join(f"{name(column)} = %s" for column in changed)
            cursor.execute(f"UPDATE timeline_scheduledtask SET {sets}", list(changed.values()))  # noqa: S608 (columns of ours)

        with only_timelines(Post):
            assert doubtful() == {run.pk}

    def test_is_not_of_a_row_that_somebody_moved(self, begun):
        begun(Post, Parcel.objects.create(arrives_at=NOW + 9 * DAY))
        ScheduledTask.objects.update(scheduled_at=NOW + 8 * DAY)

        with only_timelines(Post):
            assert doubtful() == set()

    def test_is_of_a_row_that_has_the_key_of_another_timeline(self, begun):
        """The planner goes by the name of the task alone."""
        run = begun(Post, Parcel.objects.create(arrives_at=NOW + 9 * DAY))
        [row] = ScheduledTask.objects.all()
        ended = {"state": State.COMPLETED, "reason_code": "done", "finished_at": NOW, "lease_expires_at": None}
        values = {field.attname: getattr(row, field.attname) for field in ScheduledTask._meta.concrete_fields}
        ScheduledTask.objects.create(**{**values, **ended, "id": uuid7(), "task_key": "other.ship", "revision": 2})

        with only_timelines(Post):
            assert doubtful() == {run.pk}

    def test_is_of_a_run_whose_entity_is_gone_or_has_another_key(self, begun):
        gone = Country.objects.create(code="gone")
        odd = Country.objects.create(code="odd")
        runs = {begun(Joining, gone).pk, begun(Joining, odd).pk}
        gone.delete()
        TimelineRun.objects.filter(entity_id="odd").update(entity_id="Odd")

        with only_timelines(Joining):
            assert doubtful() == runs

    def test_is_of_a_key_that_reads_as_another(self, begun):
        order = Order.objects.create()
        run = begun(Care, order)
        TimelineRun.objects.update(entity_id=f"0{order.pk}")

        with only_timelines(Care):
            assert doubtful() == {run.pk}

    @pytest.mark.parametrize(
        "cls",
        [
            pytest.param(Weekly, id="series"),
            pytest.param(spread_care(spread=DAY), id="spread"),
            pytest.param(spread_care(window=window("09:00-17:00")), id="window"),
            pytest.param(Zoned, id="zone"),
        ],
    )
    def test_is_of_what_the_database_cannot_tell(self, cls, begun):
        run = begun(cls, Order.objects.create(ships_at=NOW + 9 * DAY))

        with only_timelines(cls):
            assert doubtful() == {run.pk}

    def test_is_of_what_a_manager_hides(self, begun):
        run = begun(Hidden, Seller.objects.create())

        with only_timelines(Hidden):
            assert doubtful() == {run.pk}

    def test_is_of_none_that_nobody_knows(self, begun):
        begun(Post, Parcel.objects.create())

        with only_timelines():
            assert doubtful() == set()

    def test_is_told_by_one_statement(self, begun, django_assert_num_queries):
        for _ in range(10):
            begun(Post, Parcel.objects.create(arrives_at=NOW + 9 * DAY))
        asked = refs()

        with only_timelines(Post), django_assert_num_queries(1):
            in_doubt(asked, now=NOW, using="default")


@pytest.mark.django_db(databases=["default", "other"])
class TestAnotherDatabase:
    def test_is_asked_about_its_own(self, clock):
        clock.set(NOW)
        parcels = [Parcel.objects.using("other").create(arrives_at=NOW + DAY) for _ in range(2)]
        with only_timelines(Post):
            runs = [start("care", parcel, using="other").run for parcel in parcels]
            Parcel.objects.using("other").filter(pk=parcels[0].pk).update(arrives_at=NOW)

            assert in_doubt(refs("other"), now=NOW, using="other") == [runs[0].pk]
