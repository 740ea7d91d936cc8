"""The verbs people import: each reads story time, and makes one call."""

import inspect
from datetime import timedelta
from types import SimpleNamespace
from uuid import UUID

import pytest
from asgiref.sync import iscoroutinefunction
from django.apps import apps
from django.utils.connection import ConnectionDoesNotExist
from django.utils.functional import SimpleLazyObject

from tests.testapp.models import Order
from timeline import Timeline, after, at, shortcuts, task
from timeline.exceptions import InvalidInput, NoOpenRun, TransitionNotAllowed, UnknownTask, UnknownTimeline, WrongEntity
from timeline.lifecycle import State
from timeline.models import Event, ScheduledTask, TimelineRun
from timeline.testing import only_timelines


class Delivery(Timeline):
    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.closed": "closed"}

    @task(at("ships_at"))
    def ship(self, order):
        return "shipped"

    @task(after(ship, days=2))
    def ask(self, order):
        return None

    @task()
    def call(self, order):
        return None


class Sweep(Timeline):
    starts_on = "night.fell"

    @task(after(hours=1))
    def sweep(self):
        return None


@pytest.fixture(autouse=True)
def _story(clock, now):
    clock.set(now)
    with only_timelines(Delivery, Sweep):
        yield


@pytest.fixture
def order(now):
    return Order.objects.create(ships_at=now + timedelta(days=5))


@pytest.fixture
def ship(order):
    """The row of an order that was placed."""
    shortcuts.emit("order.placed", order)
    return ScheduledTask.objects.get()


class TestEmit:
    def test_takes_what_a_request_gives_as_its_user(self, order):
        shortcuts.emit("order.placed", SimpleLazyObject(lambda: order))

        assert ScheduledTask.objects.for_entity(order).count() == 1

    def test_records_at_story_time(self, order, clock, now):
        clock.set(now + timedelta(hours=1))

        emission = shortcuts.emit("order.placed", order, key="k", actor="ada")

        event = Event.objects.get()
        assert emission.event == event
        assert (event.payload, event.key, event.actor) == ({}, "k", "ada")
        assert event.occurred_at == event.recorded_at == now + timedelta(hours=1)
        assert len(emission.started) == 1

    def test_hands_on_what_it_is_given(self, order, now):
        shortcuts.emit("order.placed", order, payload={"n": 1}, occurred_at=now - timedelta(days=1))

        assert (Event.objects.get().payload, Event.objects.get().occurred_at) == ({"n": 1}, now - timedelta(days=1))

    @pytest.mark.parametrize("payload", [[], "", 0])
    def test_takes_nothing_empty_for_an_empty_payload(self, order, payload):
        with pytest.raises(InvalidInput):
            shortcuts.emit("order.placed", order, payload=payload)

    def test_takes_no_entity_for_the_systems_event(self):
        assert shortcuts.emit("night.fell").started[0].timeline == "sweep"

    @pytest.mark.parametrize("entity", [Order(), "order 1"])
    def test_refuses_what_is_no_saved_entity(self, db, entity):
        with pytest.raises(WrongEntity):
            shortcuts.emit("order.placed", entity)

    def test_refuses_a_database_the_entity_is_not_in(self, order):
        with pytest.raises(ConnectionDoesNotExist):
            shortcuts.emit("order.placed", order, using="elsewhere")


class TestStartAndLeave:
    @pytest.mark.parametrize("timeline", ["delivery", Delivery])
    def test_take_a_name_or_the_class(self, order, now, timeline):
        run, is_new = shortcuts.start(timeline, order, key="a", params={"n": 1})
        assert (run.started_at, run.params, run.key, is_new) == (now, {"n": 1}, "a", True)

        left = shortcuts.leave(timeline, order, key="a", reason="moved house", actor="ada")

        assert (left.ended_at, left.end_reason) == (now, "moved house")

    def test_take_no_entity_for_a_system_timeline(self):
        assert shortcuts.start(Sweep).created
        assert not shortcuts.leave(Sweep, reason="enough").is_open

    @pytest.mark.parametrize("timeline", ["nothing", Timeline, None])
    def test_refuse_an_unknown_timeline(self, order, timeline):
        with pytest.raises(UnknownTimeline):
            shortcuts.start(timeline, order)
        with pytest.raises(UnknownTimeline):
            shortcuts.leave(timeline, order, reason="x")

    def test_say_when_there_is_no_run(self, order):
        with pytest.raises(NoOpenRun):
            shortcuts.leave(Delivery, order, reason="x")


class TestSchedule:
    def test_writes_one_task(self, order, now):
        row, is_new = shortcuts.schedule("delivery.call", order, at=now + timedelta(days=1), key="k")

        assert (row.payload, row.created_at, row.occurrence, is_new) == ({}, now, "k", True)

    def test_refuses_an_unknown_task(self, order, now):
        with pytest.raises(UnknownTask):
            shortcuts.schedule("delivery.gone", order, at=now)


class TestCancelMoveRunNowAndRedrive:
    @pytest.mark.parametrize("given", [lambda row: row, lambda row: row.pk, lambda row: [row], lambda row: [row.pk]])
    def test_take_rows_or_ids_one_or_several(self, ship, now, given):
        at = now + timedelta(days=9)

        [moved] = shortcuts.move(given(ship), at=at, reason="later", actor="ada")
        assert (moved.scheduled_at, moved.reason, moved.actor) == (at, "later", "ada")
        [hastened] = shortcuts.run_now(given(ship), reason="now", actor="ada")
        assert (hastened.state, hastened.scheduled_at) == (State.AVAILABLE, now)
        [cancelled] = shortcuts.cancel(given(ship), reason="no", actor="ada")
        assert (cancelled.state, cancelled.finished_at, cancelled.actor) == (State.CANCELLED, now, "ada")
        [redriven] = shortcuts.redrive(given(ship), reason="yes", actor="ada")
        assert (redriven.previous_id, redriven.state, redriven.actor) == (ship.pk, State.AVAILABLE, "ada")

    def test_take_a_queryset(self, ship):
        assert len(shortcuts.cancel(ScheduledTask.objects.open(), reason="no")) == 1

    def test_cancel_all_that_is_open_of_an_entity(self, ship, order, now):
        [cancelled] = shortcuts.cancel_all(order, reason="closed the account", actor="ada")

        assert (cancelled, cancelled.state, cancelled.finished_at) == (ship, State.CANCELLED, now)
        assert (cancelled.reason_code, cancelled.reason, cancelled.actor) == ("operator", "closed the account", "ada")
        assert shortcuts.cancel_all(None, reason="nothing is") == []

    @pytest.mark.parametrize("verb", [shortcuts.cancel, shortcuts.run_now, shortcuts.redrive])
    def test_do_nothing_for_none(self, db, verb):
        assert verb([], reason="nothing") == []

    def test_are_an_operators_decisions(self, ship):
        shortcuts.cancel(ship, reason="no")

        assert ScheduledTask.objects.get().reason_code == "operator"

    def test_refuse_what_the_lifecycle_refuses(self, ship):
        shortcuts.cancel(ship, reason="no")

        for verb in (shortcuts.cancel, shortcuts.run_now):
            with pytest.raises(TransitionNotAllowed):
                verb(ship, reason="again")


class TestReconcile:
    def test_lets_rows_follow_a_bulk_update(self, ship, order, now):
        Order.objects.update(ships_at=now + timedelta(days=9))
        ship.refresh_from_db()
        assert ship.scheduled_at == now + timedelta(days=5)

        shortcuts.reconcile(order)

        ship.refresh_from_db()
        assert ship.scheduled_at == now + timedelta(days=9)


class TestPreview:
    @pytest.mark.parametrize("timeline", ["delivery", Delivery])
    def test_tells_what_a_run_would_have_and_writes_nothing(self, order, now, timeline):
        outlooks = shortcuts.preview(timeline, order)

        assert [(item.task_key, item.expected_at) for item in outlooks] == [
            ("delivery.ship", now + timedelta(days=5)),
            ("delivery.ask", now + timedelta(days=7)),
        ]
        assert not TimelineRun.objects.exists()


class TestForeseen:
    def test_tells_what_may_follow(self, ship, order, now):
        assert [(item.task_key, item.expected_at) for item in shortcuts.foreseen(order)] == [
            ("delivery.ask", now + timedelta(days=7))
        ]


class TestExplain:
    def test_tells_the_story_of_a_task(self, ship):
        assert "delivery.ship for testapp.order" in shortcuts.explain(ship)

    def test_takes_its_id_as_each_verb_does(self, ship):
        assert shortcuts.explain(ship.pk) == shortcuts.explain(ship)

    def test_says_that_there_is_none_of_an_id(self, ship):
        with pytest.raises(ScheduledTask.DoesNotExist):
            shortcuts.explain(UUID(int=7))


class TestEveryShortcut:
    VERBS = [
        verb
        for name, verb in inspect.getmembers(shortcuts, inspect.isfunction)
        if verb.__module__.startswith(shortcuts.__name__) and not name.startswith("_")
    ]

    @pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
    def test_lets_the_database_be_named(self, verb):
        assert inspect.signature(verb).parameters["using"].default is None

    # Migrations, which ``relabel`` is for, are not async.
    @pytest.mark.parametrize(
        "verb", [verb for verb in VERBS if verb is not shortcuts.relabel], ids=lambda verb: verb.__name__
    )
    def test_has_a_twin_for_async_code(self, verb):
        twin = getattr(shortcuts, f"a{verb.__name__}")

        assert iscoroutinefunction(twin)
        assert inspect.unwrap(twin) is verb


def rows_of_all():
    """How everything is that the package keeps."""
    models = apps.get_app_config("timeline").get_models()
    return {model.__name__: sorted(map(repr, model.objects.values_list())) for model in models}


# What is no text, no mapping, no task, no moment, and none of them either.
NEITHER = [5, b"x", [1], "text", SimpleNamespace(), ("a",)]


class TestWhatIsOfAWrongKind:
    """It is refused with the name of the argument, and nothing is written."""

    @pytest.fixture
    def refuse(self, ship):
        def refuse(field, verb, *given, **named):
            before = rows_of_all()
            with pytest.raises(InvalidInput) as caught:
                verb(*given, **named)
            assert (caught.value.field, bool(caught.value.remedy)) == (field, True)
            assert rows_of_all() == before

        return refuse

    @pytest.mark.parametrize("params", [5, True, [], "", "text", ("a",), b"x"])
    def test_as_params(self, refuse, params, now):
        other = Order.objects.create(ships_at=now)

        refuse("params", shortcuts.start, Delivery, other, params=params)
        refuse("params", shortcuts.start_many, Delivery, [other], params=params)
        refuse("params", shortcuts.enroll, Delivery, [other], params=params)
        refuse("params", shortcuts.what_if, other, timeline=Delivery, params=params)
        refuse("params", shortcuts.what_if, other, params=params)
        refuse("payload", shortcuts.what_if, other, payload=params)
        refuse("fields", shortcuts.what_if, other, fields=params)

    @pytest.mark.parametrize("given", [*NEITHER, None, "", {"a": 1}, Order, Order(pk=1), str(UUID(int=1))])
    def test_as_tasks(self, refuse, given, now):
        refuse("tasks", shortcuts.cancel, given, reason="why")
        refuse("tasks", shortcuts.move, given, at=now, reason="why")
        refuse("tasks", shortcuts.run_now, given, reason="why")
        refuse("tasks", shortcuts.redrive, given, reason="why")
        refuse("task", shortcuts.step_happened, given, "step", reason="why")
        refuse("task", shortcuts.forget_step, given, "step", reason="why")
        refuse("task", shortcuts.go_on, given, reason="why")
        refuse("task", shortcuts.approve, given, actor="ada")
        refuse("task", shortcuts.reject, given, actor="ada")
        refuse("task", shortcuts.explain, given)

    def test_as_tasks_a_queryset_of_something_else(self, refuse):
        refuse("tasks", shortcuts.cancel, Order.objects.all(), reason="why")

    @pytest.mark.parametrize("many", [0, 2])
    def test_as_one_task(self, refuse, ship, many):
        refuse("task", shortcuts.go_on, [ship.pk, ship.pk][:many], reason="why")

    @pytest.mark.parametrize("given", [*NEITHER, "", {5: 1}])
    def test_as_what_was_seen(self, refuse, ship, given, now):
        refuse("seen", shortcuts.cancel, ship, reason="why", seen=given)
        refuse("seen", shortcuts.move, ship, at=now, reason="why", seen=given)
        refuse("seen", shortcuts.run_now, ship, reason="why", seen=given)
        refuse("seen", shortcuts.redrive, ship, reason="why", seen=given)

    def test_as_what_was_seen_ids_that_are_text(self, refuse, ship):
        """They would be found for no task, and nothing would be checked."""
        refuse("seen", shortcuts.cancel, ship, reason="why", seen={str(ship.pk): ship.seq - 1})
        refuse("seen", shortcuts.cancel, ship, reason="why", seen={ship.pk: str(ship.seq)})
        refuse("seen", shortcuts.open_limit, "key", reason="why", seen=[str(ship.pk)])  # of limits
        refuse("seen", shortcuts.open_limit, "key", reason="why", seen=iter([ship.pk]))  # of limits

    @pytest.mark.parametrize("given", [5, None, "", "text", b"x", SimpleNamespace(), Order(pk=1)])
    def test_as_entities(self, refuse, given):
        refuse("entities", shortcuts.emit_many, "order.placed", given)
        refuse("entities", shortcuts.start_many, Delivery, given)
        refuse("queryset", shortcuts.enroll, Delivery, given)

    @pytest.mark.parametrize("given", [*NEITHER, None, "no", 0])
    def test_as_yes_or_no(self, refuse, order, given):
        refuse("once", shortcuts.enroll, Delivery, [order], once=given)
        refuse("cancel", shortcuts.erase, order, reason="asked", cancel=given)
        refuse("owned", shortcuts.erase, order, reason="asked", owned=given)
        refuse("everything", shortcuts.hold, everything=given, reason="why")

    @pytest.mark.parametrize("given", [5, b"x", "text", [1], SimpleNamespace()])
    def test_as_a_distance(self, refuse, ship, given):
        refuse("by", shortcuts.move, ship, by=given, reason="why")

    @pytest.mark.parametrize("given", [*NEITHER, "", Order(pk=1)])
    def test_as_a_cause(self, refuse, order, now, given):
        refuse("cause", shortcuts.schedule, "delivery.call", order, at=now, cause=given)

    @pytest.mark.parametrize("given", [*NEITHER, None, "", True, Order(pk=1)])
    def test_as_a_hold(self, refuse, given):
        refuse("hold", shortcuts.release, given)

    @pytest.mark.parametrize("given", [5, None, [1], {}])
    def test_as_a_step(self, refuse, ship, given):
        refuse("step", shortcuts.step_happened, ship, given, reason="why")
        refuse("step", shortcuts.forget_step, ship, given, reason="why")

    def test_but_the_id_of_a_hold_may_be_text(self, ship):
        held = shortcuts.hold(task="delivery.ship", reason="why")

        assert shortcuts.release(str(held.pk)).released_at is not None
