"""Insert what is missing, and be told what was."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum

import pytest
from django.db import DataError, IntegrityError, transaction
from django.db.models.signals import post_init

from tests.databases import VENDOR
from timeline.ids import uuid7
from timeline.models import Event, ScheduledTask, TimelineRun
from timeline.store.insert import Grid, Insertion, columns_of, fields_of, insert_in_turn, insert_missing, new_row

pytestmark = pytest.mark.django_db


@pytest.fixture
def seen(now):
    """Make an event, not saved."""
    return lambda key, **columns: Event(name="order.seen", key=key, occurred_at=now, recorded_at=now, **columns)


def insert(*rows):
    return insert_missing(rows, using="default")


def insert_columns(model, rows, **given):
    return Insertion(model, columns_of(rows), using="default", **given).send().inserted()


class TestNewRow:
    @pytest.mark.parametrize("model", [ScheduledTask, TimelineRun, Event])
    def test_is_as_django_makes_it(self, model, now):
        given = {"id": uuid7(), "entity_label": "testapp.order"}

        made, theirs = new_row(model, given), model(**given)

        assert {name: made.__dict__[name] for name in fields_of(model)} == {
            name: theirs.__dict__[name] for name in fields_of(model)
        }
        assert (made._state.adding, made._state.db) == (True, None)

    def test_has_an_id_and_a_payload_of_its_own(self):
        one, other = new_row(ScheduledTask, {}), new_row(ScheduledTask, {})

        one.payload["n"] = 1

        assert one.pk != other.pk
        assert other.payload == new_row(ScheduledTask, {}).payload == {}

    def test_is_told_of_where_somebody_listens(self):
        told = []

        def listen(instance, **_given):
            told.append(instance)

        post_init.connect(listen, sender=ScheduledTask)
        try:
            made = new_row(ScheduledTask, {"occurrence": "a"})
        finally:
            post_init.disconnect(listen, sender=ScheduledTask)

        assert told == [made]
        assert made.occurrence == "a"


class TestInsertMissing:
    def test_inserts_in_the_order_given(self, seen):
        rows = [seen("b", payload={"at": [1, "ü"]}), seen("a")]

        inserted = insert(*rows)

        assert inserted == rows
        assert [Event.objects.get(pk=row.pk).payload for row in inserted] == [{"at": [1, "ü"]}, {}]
        assert [(row._state.adding, row._state.db) for row in inserted] == [(False, "default")] * 2

    def test_leaves_out_what_is_there_and_says_so(self, seen):
        insert(seen("a"))
        again, new = seen("a"), seen("b")

        with transaction.atomic():
            assert insert(again, new) == [new]

        assert Event.objects.count() == 2
        assert again._state.adding

    def test_leaves_out_the_second_of_the_same(self, seen):
        first, second = seen("a"), seen("a")

        assert insert(first, second) == [first]

    def test_inserts_nothing_of_nothing(self, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert insert() == []

    def test_takes_any_number_of_rows_in_one_statement(self, seen, django_assert_num_queries):
        rows = [seen(str(number)) for number in range(1500)]

        with django_assert_num_queries(1):
            assert insert(*rows) == rows
        assert Event.objects.count() == 1500

    def test_stores_the_value_of_an_enumeration_that_is_text(self, seen):
        class Key(str, Enum):  # noqa: UP042 (of StrEnum, str() gives the value)
            FIRST = "first"

        [row] = insert(seen(Key.FIRST))

        assert Event.objects.get(pk=row.pk).key == "first"

    def test_refuses_what_a_check_refuses(self, make_task):
        """Only a taken place is passed over; a row that is wrong is an error."""
        task = make_task()
        wrong = ScheduledTask(task_key="trial.remind", state="lost", nominal_at=task.nominal_at, max_attempts=5)
        wrong.scheduled_at = wrong.created_at = task.nominal_at

        with pytest.raises(IntegrityError), transaction.atomic():
            insert(wrong)

    def test_refuses_a_taken_place_where_there_can_be_none(self, seen):
        insert(seen("k"))
        columns = {field.attname: getattr(seen("k"), field.attname) for field in Event._meta.concrete_fields}

        with pytest.raises(IntegrityError), transaction.atomic():
            insert_columns(Event, [columns], taken=False)

    @pytest.mark.only_postgresql  # SQLite bounds no text.
    def test_refuses_text_that_is_too_long_rather_than_cut_it(self, seen):
        with pytest.raises(DataError), transaction.atomic():
            insert(seen("x" * 201))

    @pytest.mark.parametrize("one", [True, False], ids=["one", "several"])
    @pytest.mark.parametrize(
        "text", ["NULL", "", "{}", '","', "a\\b\"c'd", "%s %(x)s", "é\n\t ☃", "{a,b}", "\\", '"', " "]
    )
    def test_stores_text_as_it_is(self, seen, text, one):
        """Neither as one parameter nor in an array of them does it mean anything."""
        rows = [seen("k", actor=text, payload={"t": [text, None]})]
        rows += [] if one else [seen("", actor=f"{text}!")]

        insert(*rows)

        stored = Event.objects.get(pk=rows[0].pk)
        assert (stored.actor, stored.payload) == (text, {"t": [text, None]})

    def test_stores_what_django_itself_would(self, make_task, now, seen):
        """Each column of a row with everything in it, and of one with nothing."""
        cause = insert(seen("k"))[0]
        full = make_task(
            state="completed",
            cause=cause,
            previous=make_task(),
            result=[1.5, None, "é"],
            claim_token=uuid7(),
            anchor_value=now.replace(microsecond=123456),
            expires_at=now,
            priority=-3,
            lost=2,
            error="a\nb",
        )
        bare = make_task()
        before = list(ScheduledTask.objects.filter(pk__in=[full.pk, bare.pk]).order_by("pk").values())
        ScheduledTask.objects.filter(pk__in=[full.pk, bare.pk]).delete()

        insert(full, bare)

        assert list(ScheduledTask.objects.filter(pk__in=[full.pk, bare.pk]).order_by("pk").values()) == before


class TestInsertion:
    def test_gives_what_is_left_out_its_default(self, now):
        moments = {"nominal_at": now, "scheduled_at": now, "created_at": now}
        row = {"id": uuid7(), "task_key": "trial.remind", "state": "scheduled", "max_attempts": 5, **moments}

        assert insert_columns(ScheduledTask, [row]) == {row["id"]}

        stored = ScheduledTask.objects.get()
        fresh = ScheduledTask(**row)
        assert [getattr(stored, field.attname) for field in ScheduledTask._meta.concrete_fields] == [
            getattr(fresh, field.attname) for field in ScheduledTask._meta.concrete_fields
        ]

    def test_says_which_were_left_out(self, now):
        rows = [{"id": uuid7(), "name": "n", "key": "k", "occurred_at": now, "recorded_at": now} for _ in range(3)]

        assert insert_columns(Event, rows) == {rows[0]["id"]}

    def test_inserts_nothing_of_nothing(self, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert insert_columns(Event, []) == set()


class TestGrid:
    def test_inserts_all_members_of_all_groups(self, now, django_assert_num_queries):
        keys = [uuid7() for _row in range(6)]
        groups = {
            "entity_label": ["a.b", "a.b", "a.c"],
            "entity_id": ["1", "2", "1"],
            "actor": ["ann", "b\"\\'", "ann"],
        }
        members = {"name": ["x", "y"], "payload": [{"n": 1}, {"at": ["ü", "%s"]}], "occurred_at": [now] * 2}
        members["recorded_at"] = [now, now + timedelta(days=1)]

        with django_assert_num_queries(1):
            inserted = (
                Insertion(Event, {"id": keys}, grid=Grid(groups, members), taken=False, using="default")
                .send()
                .inserted()
            )

        assert inserted == set(keys)
        rows = Event.objects.in_bulk(keys)
        assert [
            (row.entity_label, row.entity_id, row.actor, row.name, row.payload, row.recorded_at)
            for row in (rows[key] for key in keys)
        ] == [
            (label, key, actor, name, payload, at)
            for label, key, actor in zip(*groups.values(), strict=True)
            for name, payload, at in zip(members["name"], members["payload"], members["recorded_at"], strict=True)
        ]

    def test_leaves_out_what_is_taken_or_under_nothing(self, now):
        run = TimelineRun.objects.create(timeline="t", entity_label="a.b", entity_id="1", started_at=now)
        gone = uuid7()
        given = {
            "task_key": ["t.one", "t.two"],
            "revision": [1, 1],
            "state": ["scheduled"] * 2,
            "nominal_at": [now] * 2,
        }
        grid = Grid(
            {"run_id": [run.pk, gone], "entity_label": ["a.b"] * 2, "entity_id": ["1", "2"]},
            given | {"scheduled_at": [now] * 2, "created_at": [now] * 2, "max_attempts": [5, 5]},
        )

        def insert():
            keys = [uuid7() for _row in range(4)]
            insertion = Insertion(ScheduledTask, {"id": keys}, grid=grid, under="run_id", using="default")
            return keys, insertion.send().inserted()

        (keys, first), (_keys, again) = insert(), insert()

        assert first == set(keys[:2])
        assert again == set()
        assert {task.task_key for task in ScheduledTask.objects.filter(run=run)} == {"t.one", "t.two"}


class TestInsertInTurn:
    """Events, a run under each and two tasks under each run; an event's place is its key, a run's its entity."""

    @pytest.fixture
    def insertions(self, now):
        def made(*places):
            events, runs, tasks = [], [], []
            for key, entity_id in places:
                events.append({"id": uuid7(), "name": "seen", "key": key, "occurred_at": now, "recorded_at": now})
                entity = {"entity_label": "testapp.order", "entity_id": entity_id}
                run = {
                    "id": uuid7(),
                    "timeline": "trial",
                    "started_by_id": events[-1]["id"],
                    "started_at": now,
                    **entity,
                }
                runs.append(run)
                for name in ("remind", "expire"):
                    task = {
                        "id": uuid7(),
                        "run_id": run["id"],
                        "task_key": f"trial.{name}",
                        "state": "scheduled",
                        **entity,
                    }
                    tasks.append(
                        task | dict.fromkeys(("nominal_at", "scheduled_at", "created_at"), now) | {"max_attempts": 5}
                    )
            return [
                Insertion(Event, columns_of(events), using="default"),
                Insertion(TimelineRun, columns_of(runs), under="started_by_id", using="default"),
                Insertion(ScheduledTask, columns_of(tasks), under="run_id", taken=False, using="default"),
            ]

        return made

    def test_inserts_all(self, insertions, django_assert_num_queries):
        events, runs, tasks = insertions(("a", "1"), ("b", "2"))

        with django_assert_num_queries(1 if VENDOR == "postgresql" else 3):
            insert_in_turn([events, runs, tasks], using="default")

        assert events.inserted() == set(events.keys)
        assert runs.inserted() == set(runs.keys)
        assert set(ScheduledTask.objects.values_list("pk", flat=True)) == set(tasks.keys)

    def test_leaves_out_what_is_under_a_row_that_was_left_out(self, insertions):
        """The second event was recorded, of another entity even; the third entity has a run."""
        insert_in_turn(insertions(("taken", "0"), ("x", "3")), using="default")
        events, runs, tasks = insertions(("a", "1"), ("taken", "2"), ("b", "3"))

        insert_in_turn([events, runs, tasks], using="default")

        assert events.inserted() == {events.keys[0], events.keys[2]}
        assert runs.inserted() == {runs.keys[0]}
        assert set(ScheduledTask.objects.filter(pk__in=tasks.keys).values_list("pk", flat=True)) == set(tasks.keys[:2])
        assert (Event.objects.count(), TimelineRun.objects.count(), ScheduledTask.objects.count()) == (4, 3, 6)

    def test_passes_over_tables_without_rows(self, insertions, django_assert_num_queries):
        events = insertions(("a", "1"))[0]

        with django_assert_num_queries(1):
            insert_in_turn([events, *insertions()[1:]], using="default")
        with django_assert_num_queries(0):
            insert_in_turn(insertions(), using="default")

        assert events.inserted() == set(events.keys)
