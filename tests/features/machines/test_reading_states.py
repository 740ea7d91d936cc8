"""Where machines are, in the words of people and for programs."""

import json

import pytest
from django.core.management import call_command

from project.accounts.timelines import Trial
from tests.machines import Booking, S, placed
from timeline import Machine, after, task
from timeline.features.machines.reading import SHOWN, machine_lines, state_of, states_of, taken_by
from timeline.models import ScheduledTask, TimelineRun
from timeline.reading.inventory import inventory
from timeline.shortcuts import emit, explain
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db


class Door(Machine):
    """Opened and shut."""

    entity = "testapp.Order"
    starts_on = "door.made"
    initial = "shut"
    table = {"shut": {"door.opened": "open"}, "open": {"door.shut": "shut", "door.broken": "broken"}, "broken": {}}

    @task(after(days=5))
    def oil(self, order):
        """Oil it."""


@pytest.fixture(autouse=True)
def _machines():
    with only_timelines(Booking, Door):
        yield


class TestExplain:
    def test_says_where_the_run_is_and_what_it_takes(self, order, clock):
        emit("door.made", order)
        clock.advance(minutes=30)
        emit("door.opened", order)

        told = explain(ScheduledTask.objects.get()).splitlines()

        assert told[1:3] == [
            f"Its run is open since {clock.now:%Y-%m-%d %H:%M} UTC.",
            "It takes door.broken, door.shut.",
        ]

    def test_says_that_an_end_takes_nothing(self, order, clock):
        for event in ("door.made", "door.opened", "door.broken"):
            emit(event, order)

        told = explain(ScheduledTask.objects.get())

        assert "Its run is broken since" in told
        assert "It takes" not in told

    def test_says_nothing_of_a_run_without_states(self, make_task):
        assert "Its run" not in explain(make_task())


class TestTitles:
    """What people call states, events and exits stands before their names."""

    @pytest.fixture(autouse=True)
    def _named(self):
        class Gate(Machine):
            entity = "testapp.Order"
            starts_on = "gate.made"
            initial = "shut"
            table = {"shut": {"gate.opened": "open"}, "open": {}}
            exits = {"order.returned": "gone"}
            titles = {
                "shut": "locked",
                "gate.made": "it was built",
                "gate.opened": "somebody came",
                "gone": "taken down",
                "order.returned": "it was sent back",
            }

            @task(after(days=5))
            def oil(self, order): ...

        with only_timelines(Gate):
            yield

    def test_are_in_what_explain_tells(self, order, clock):
        emit("gate.made", order)
        emit("order.returned", order)

        told = explain(ScheduledTask.objects.get())

        assert "with the event it was built (gate.made)." in told
        assert "Its run is locked (shut) since" in told
        assert "the run ended by the exit “taken down (gone)”" in told

    def test_are_in_how_a_machine_came_where_it_is(self, order, capsys):
        emit("gate.made", order)

        call_command("timeline_explain", "testapp.order", str(order.pk))

        told = capsys.readouterr().out
        assert "is locked (shut) since" in told
        assert "It takes somebody came (gate.opened)." in told
        assert "locked (shut) (it was built (gate.made))" in told

    def test_are_beside_the_names_for_programs(self, order, now):
        emit("gate.made", order)

        [line] = machine_lines(TimelineRun.objects.all(), people=lambda _run: True, using="default")
        [entry] = inventory(now=now, using="default")

        assert line.titles == {"gate.made": "it was built", "gate.opened": "somebody came", "shut": "locked"}
        assert entry.exits == {"order.returned": "gone"}
        assert entry.titles["gone"] == "taken down"
        assert entry.states[0].lines == ["somebody came (gate.opened) → open"]
        assert entry.states[0].title == "locked"
        assert entry.starts[0].said == "it was built (gate.made)"


class TestCommand:
    def test_says_where_machines_are_and_how_they_came_there(self, order, clock, capsys):
        emit("door.made", order, actor="ada")
        emit("door.opened", order)

        call_command("timeline_explain", "testapp.order", str(order.pk))

        at = f"{clock.now:%Y-%m-%d %H:%M} UTC"
        assert capsys.readouterr().out.splitlines()[:4] == [
            f"door of testapp.order {order.pk} is open since {at}.",
            "It takes door.broken, door.shut.",
            f"  {at}  shut (door.made), by ada",
            f"  {at}  shut → open (door.opened)",
        ]

    def test_says_it_of_a_machine_without_tasks(self, order, capsys):
        placed(order, S.QUEUED)

        call_command("timeline_explain", "testapp.order", str(order.pk))

        assert "booking of testapp.order" in capsys.readouterr().out


class TestMachineLines:
    def test_tell_how_it_came_there(self, order, clock):
        emit("door.made", order, actor="ada")
        emit("door.opened", order)

        [line] = machine_lines(TimelineRun.objects.all(), people=lambda run: True, using="default")
        [masked] = machine_lines(TimelineRun.objects.all(), people=lambda run: False, using="default")

        assert [(move.seq, move.from_state, move.to_state, move.event, move.actor) for move in line.moves] == [
            (0, "", "shut", "door.made", "ada"),
            (1, "shut", "open", "door.opened", ""),
        ]
        assert [move.actor for move in masked.moves] == ["", ""]
        assert (line.takes, line.is_cut) == (["door.broken", "door.shut"], False)
        assert line.told == f"open since {clock.now:%Y-%m-%d %H:%M} UTC"

    def test_tell_the_latest_of_many(self, order):
        emit("door.made", order)
        for _ in range(SHOWN // 2):
            emit("door.opened", order)
            emit("door.shut", order)

        [line] = machine_lines(TimelineRun.objects.all(), people=bool, using="default")

        assert [move.seq for move in line.moves] == list(range(1, SHOWN + 1))
        assert line.is_cut

    def test_take_one_statement_however_many_there_are(self, order, django_assert_num_queries):
        runs = [placed(order, S.QUEUED, key=str(number)) for number in range(5)]

        with django_assert_num_queries(1):
            assert len(machine_lines(runs, people=bool, using="default")) == 5

    def test_take_none_where_there_is_no_machine(self, order, now, django_assert_num_queries):
        run = TimelineRun(timeline="trial", started_at=now)

        with django_assert_num_queries(0):
            assert machine_lines([run], people=bool, using="default") == []
        assert (state_of(run), taken_by(run)) == ("", [])


class TestInventory:
    def test_lists_states_and_what_they_take(self, now):
        [booking, door] = inventory(now=now, using="default")

        assert [state.name for state in booking.states] == [str(state) for state in S]
        [shut, opened, broken] = door.states
        assert (shut.initial, shut.end, shut.takes) == (True, False, {"door.opened": "open"})
        assert (broken.end, broken.takes, broken.told) == (True, {}, "an end")
        assert opened.told == "door.broken → broken, door.shut → shut"
        escalated = booking.states[list(S).index(S.OPERATOR_ESCALATED)]
        assert escalated.takes["operator.resolved"] == "BACK"
        assert booking.states[list(S).index(S.SEARCHING)].working

    def test_prints_them(self, capsys):
        call_command("timeline_inventory", "--markdown")
        call_command("timeline_inventory", "door")
        printed = capsys.readouterr().out
        call_command("timeline_inventory", "--json")

        assert "States: shut (door.opened → open); open (" in printed
        assert json.loads(capsys.readouterr().out)[1]["states"][0]["name"] == "shut"

    def test_of_another_timeline_has_none(self):
        assert states_of(Trial.definition) == []
