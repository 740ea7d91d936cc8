"""Sets: what the verbs for many share, and that they write what a loop over the verbs for one writes."""

import random
from datetime import timedelta

import pytest
from django.db import transaction

from tests.operations.many import TIMELINES
from tests.testapp.models import Country, Customer, Order, Parcel
from timeline.exceptions import WrongEntity
from timeline.models import EntityRef, Event, LogEntry, ScheduledTask, TimelineRun
from timeline.operations.sets import Portion, Tally, in_batches, rounds
from timeline.shortcuts import emit, emit_many, enroll
from timeline.testing import autostart, only_timelines


@pytest.fixture(autouse=True)
def _story(db, clock, now):
    clock.set(now)
    with only_timelines(*TIMELINES):
        yield


def written():
    """All rows, but for their ids: those name rows by what they are about."""
    events = {event.pk: (*event.entity_ref, event.name, event.key, index) for index, event in numbered(Event)}
    runs = {run.pk: (*run.entity_ref, run.timeline, index) for index, run in numbered(TimelineRun)}
    tasks = {task.pk: (runs.get(task.run_id), task.task_key, task.revision) for task in ScheduledTask.objects.all()}
    names = {None: None, **events, **runs, **tasks}

    def rows(model, left_out):
        columns = [field.attname for field in model._meta.concrete_fields if field.attname not in left_out]
        references = {"id", "run_id", "task_id", "cause_id", "started_by_id", "previous_id"}
        return sorted(
            repr([(name, names[value] if name in references else value) for name, value in row.items()])
            for row in model.objects.values(*columns)
        )

    return (
        rows(Event, ()),
        rows(TimelineRun, ()),
        rows(ScheduledTask, ()),
        rows(LogEntry, ("id",)),
    )


def numbered(model):
    """Rows of the same entity told apart by their order."""
    seen = {}
    for row in model.objects.order_by("pk"):
        same = (row.entity_ref, getattr(row, "name", getattr(row, "timeline", "")))
        seen[same] = seen.get(same, 0) + 1
        yield seen[same], row


class TestTally:
    def test_adds_up(self):
        assert Tally(recorded=1, tasks=2) + Tally(again=3, tasks=4) == Tally(recorded=1, again=3, tasks=6)


class TestRounds:
    def test_have_nobody_twice_and_everybody_as_often_as_given(self):
        a, b, c = (EntityRef("x", key) for key in "abc")

        assert rounds([a, b, a, c, a, b]) == [[a, b, c], [a, b], [a]]
        assert rounds([]) == []


class TestInBatches:
    def test_are_of_one_database_each(self):
        refs = [EntityRef("x", str(number)) for number in range(5)]
        aliases = ["one", "two", "one", "one", "two"]

        assert list(in_batches(zip(aliases, refs, strict=True), 2)) == [
            Portion("one", [refs[0], refs[2]]),
            Portion("two", [refs[1], refs[4]]),
            Portion("one", [refs[3]]),
        ]


@pytest.mark.django_db(databases=["default", "other"])
class TestDatabases:
    def test_are_those_that_the_entities_came_from(self):
        here, there = Order.objects.create(), Order.objects.using("other").create()

        assert emit_many("order.seen", [here, there]).recorded == 2
        assert Event.objects.using("default").count() == Event.objects.using("other").count() == 1

    def test_are_those_of_their_queryset(self):
        Order.objects.using("other").create()

        assert enroll("delivery", Order.objects.using("other")).started == 1
        assert TimelineRun.objects.using("other").count() == 1
        assert not TimelineRun.objects.exists()

    def test_are_the_one_that_is_named(self):
        here = Order.objects.create()

        with pytest.raises(WrongEntity, match="other"):
            emit_many("order.seen", [here], using="other")


class TestEquivalence:
    """``emit_many`` writes what a loop of ``emit`` writes: rows, log and events."""

    @pytest.mark.parametrize("seed", range(12))
    def test_holds_for_whatever_came_before(self, now, clock, seed):
        choose = random.Random(seed)  # noqa: S311 (a situation, not a secret)
        entities = self.entities(choose, now)
        acts = [self.act(choose, entities, now) for _ in range(4)]

        one_by_one = self.done(acts, clock, now, self.loop)
        in_sets = self.done(acts, clock, now, self.sets)

        assert in_sets == one_by_one
        assert any(one_by_one[0])

    def entities(self, choose, now):
        moments = [None, now - timedelta(days=3), now + timedelta(days=1), now + timedelta(days=30, microseconds=7)]
        orders = [
            Order.objects.create(
                ships_at=choose.choice(moments),
                due_on=choose.choice([None, now.date(), now.date() + timedelta(days=9)]),
                zone=choose.choice(["", "Asia/Tokyo", "nowhere"]),
            )
            for _ in range(7)
        ]
        parcels = [Parcel.objects.create(arrives_at=choose.choice(moments)) for _ in range(2)]
        others = [Country.objects.create(code='"\\{},é'), Customer.objects.create(ends_at=choose.choice(moments)), None]
        return [*orders, *parcels, *others]

    def act(self, choose, entities, now):
        given = {
            "key": choose.choice(["", "k", "\"{\\}'"] if choose.random() < 0.7 else ["k"]),
            "payload": {"n": [1, "é", None, '"\\']},
            "actor": choose.choice(["", "ada"]),
            "occurred_at": choose.choice([None, now - timedelta(days=2)]),
        }
        name = choose.choice(["order.placed", "order.placed", "order.closed", "order.reopened", "order.seen"])
        some = choose.choices(entities, k=choose.randint(1, 20))  # Some of them more than once.
        return name, some, given, choose.random() < 0.2

    def done(self, acts, clock, now, how):
        with transaction.atomic():
            for number, (name, entities, given, is_off) in enumerate(acts):
                clock.set(now + timedelta(hours=number))
                with autostart(not is_off):
                    tally = how(name, entities, given)
            rows = written()
            transaction.set_rollback(True)
        return rows, tally

    def loop(self, name, entities, given):
        done = [emit(name, entity, **given) for entity in entities]
        return (
            sum(emission.recorded for emission in done),
            sum(not emission.recorded for emission in done),
            sum(len(emission.started) for emission in done),
            sum(len(emission.ended) for emission in done),
        )

    def sets(self, name, entities, given):
        tally = emit_many(name, entities, batch_size=7, **given)
        return tally.recorded, tally.again, tally.started, tally.ended
