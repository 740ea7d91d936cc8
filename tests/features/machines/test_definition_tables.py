"""Machines as declared: what is wrong with a table is an error at start, with the remedy; what it says needs no database."""

from enum import Enum, StrEnum

import pytest

from tests.machines import ENDS, EVENTS, Booking, S, expected
from timeline import (
    BACK,
    IGNORE,
    OPEN,
    STAY,
    WORKING,
    Machine,
    Then,
    Timeline,
    TransitionNotAllowed,
    after,
    after_run,
    never,
    on,
    step,
    task,
)
from timeline.exceptions import DefinitionError, InvalidInput, MoveNotAllowed, UnknownMachineEvent

TABLE = {"new": {"paid": "done"}, "done": {}}


def declare(table=TABLE, initial="new", **options):
    return type("Lock", (Machine,), {"table": table, "initial": initial, **options})


class TestNext:
    @pytest.mark.parametrize("state", S)
    def test_is_what_the_table_says_of_each_event(self, state):
        for event in EVENTS:
            wanted = expected(state, event)
            if wanted is None:
                with pytest.raises(MoveNotAllowed) as refused:
                    Booking.next(state, event)
                assert (refused.value.state, refused.value.event) == (state, event)
                assert refused.value.takes == sorted(known for known in EVENTS if expected(state, known))
                assert refused.value.ended == (state in ENDS)
            else:
                assert Booking.next(state, event) == wanted

    def test_is_plain_text(self):
        assert type(Booking.next(S.CREATED, "booking.submitted")) is str

    def test_refuses_an_event_that_no_state_takes(self):
        with pytest.raises(UnknownMachineEvent, match=r"takes the event 'otp.givn'.*'otp.given'"):
            Booking.next(S.CREATED, "otp.givn")

    def test_refuses_a_state_that_there_is_not(self):
        with pytest.raises(InvalidInput, match=r"'BOKED' is no state of booking.*BOOKED"):
            Booking.next("BOKED", "otp.given")

    def test_says_what_the_state_would_take(self):
        with pytest.raises(
            TransitionNotAllowed, match=r"CREATED, which does not take 'otp.given'. It takes booking.cancelled, "
        ):
            Booking.next(S.CREATED, "otp.given")


class TestTable:
    def test_has_the_states_and_the_events_in_it(self):
        table = Booking.definition.machine

        assert set(table.states) == set(S)
        assert table.ends == ENDS
        assert table.events == set(EVENTS)

    def test_knows_where_a_back_may_lead(self):
        edges = Booking.definition.machine.edges

        assert ("AUTH_CAPTCHA_REQUIRED", "AUTHENTICATING") in edges
        assert ("AUTH_CAPTCHA_REQUIRED", "SEARCHING") not in edges
        assert ("RETRY_SCHEDULED", "CONFIRMING") in edges
        assert ("OPERATOR_ESCALATED", "AUTH_OTP_REQUIRED") in edges  # By a code that did not come.
        assert ("OPERATOR_ESCALATED", "AUTHENTICATING") in edges  # By way of a captcha, or of a retry.
        assert ("OPERATOR_ESCALATED", "RETRY_SCHEDULED") not in edges
        assert ("OPERATOR_ESCALATED", "OPERATOR_ESCALATED") not in edges

    def test_takes_members_of_an_enumeration_that_is_text_another_way(self):
        class Old(str, Enum):  # noqa: UP042 (that is the case)
            NEW = "new"
            DONE = "done"

        class Event(StrEnum):
            PAID = "paid"

        machine = declare({Old.NEW: {Event.PAID: Old.DONE}, Old.DONE: {}}, Old.NEW)

        assert machine.definition.machine.rows == TABLE
        assert machine.next(Old.NEW, Event.PAID) == "done"

    def test_has_no_task_and_need_have_none(self):
        assert not declare().definition.tasks

    def test_may_be_lent_by_an_abstract_machine(self):
        class Base(Machine, abstract=True):
            table = TABLE
            initial = "new"

        class Door(Base):
            @task(after(days=1))
            def look(self): ...

        assert Door.definition.machine.initial == "new"
        assert Timeline not in Door.__bases__


class TestChecks:
    @pytest.mark.parametrize(
        ("table", "said"),
        [
            (None, "has table = None"),
            ({}, "has table = {}"),
            ({"new": "done", "done": {}}, "has 'done' as the row of 'new'"),
            (
                {"new": {"paid": "don"}, "done": {}},
                "names the state 'don' \\(new, paid\\), which has no row. Did you mean 'done'",
            ),
            ({"new": {"paid": ("done", "new")}, "done": {}}, "has several targets for 'new' and 'paid'"),
            ({"new": {"paid": {"done"}}, "done": {}}, "has several targets"),
            ({"new": {"paid": None}, "done": {}}, "leads to None, which is no name"),
            ({"new": {1: "done"}, "done": {}}, "has an event 1 in the row"),
            ({"new": {"is paid": "done"}, "done": {}}, "has an event 'is paid'"),
            ({"new": {"": "done"}, "done": {}}, "has an event ''"),
            ({"new": {"x" * 101: "done"}, "done": {}}, "has an event 'xxx"),
            ({"new": {"paid": "done"}, "done": {}, 1: {"a": "done"}}, "has a state 1"),
            ({"new": {"paid": "x" * 51}, "x" * 51: {}}, "which is no name of a state"),
            ({"new": {"paid": "all done"}, "all done": {}}, "which is no name of a state"),
            ({"new": {"paid": "a\0"}, "a\0": {}}, "which is no name of a state"),
            ({"new": {"paid": "a\ud800"}, "a\ud800": {}}, "which is no name of a state"),
            ({"new": {"paid\ud800": "done"}, "done": {}}, "has an event"),
            (
                {"new": {"paid": "done", "timeline.erased": "done"}, "done": {}},
                "has the event 'timeline.erased' in the row of 'new'. .*Call erase",
            ),
            (
                {"new": {"paid": "done"}, "done": {}, "lost": {"a": "done"}},
                "has 'lost', which no way leads to from 'new'",
            ),
            (
                {"new": {"paid": "done", "a": "stuck"}, "stuck": {"b": "stuck"}, "done": {}},
                "'stuck', from which no way leads",
            ),
            ({"new": {"a": "old"}, "old": {"b": "new"}}, "'new', from which no way leads to an end"),
            ({"new": {}, "done": {}}, "begins in 'new', which is an end"),
            ({"new": {"a": BACK, "paid": "done"}, "done": {}}, "begins in 'new', which has a BACK"),
            ({**TABLE, OPEN: {"a": BACK}}, "has a BACK in the row OPEN"),
            ({**TABLE, WORKING: {"a": STAY}}, "has a row WORKING, but no state that is working"),
            (
                {**TABLE, OPEN: {"paid": "new"}},
                "has two targets for 'new' and 'paid': 'done' in its own row, 'new' in OPEN",
            ),
            ({**TABLE, OPEN: {"paid": IGNORE}}, "has two targets"),
        ],
    )
    def test_refuse_a_table(self, table, said):
        with pytest.raises(DefinitionError, match=f"Lock: .*{said}"):
            declare(table)

    def test_refuse_two_targets_of_rows_for_several(self):
        table = {**TABLE, WORKING: {"x": STAY}, OPEN: {"x": IGNORE}}

        with pytest.raises(DefinitionError, match=r"two targets for 'new' and 'x': STAY in WORKING, IGNORE in OPEN"):
            declare(table, working=("new",))

    def test_let_rows_say_the_same_twice(self):
        assert declare({**TABLE, OPEN: {"paid": "done"}}).next("new", "paid") == "done"

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"initial": "nw"}, "names the state 'nw' \\(initial\\)"),
            ({"initial": None}, "has initial = None"),
            ({"working": ("nw",)}, "names the state 'nw' \\(working\\)"),
            ({"working": "new"}, "has working = 'new'"),
            ({"working": ("done",)}, "has the end 'done' as working"),
            ({"exits": {"paid": "paid"}}, "has 'paid' in its table and among its exits"),
            ({"payloads": {"pid": dict}}, "has a payload of 'pid', which it knows nowhere"),
            ({"payloads": {"paid": dict}}, "has as the payload of 'paid' <class 'dict'>"),
            ({"payloads": "paid"}, "has payloads = 'paid'"),
            ({"again": True}, "has again = True"),
        ],
    )
    def test_refuse_an_option(self, options, said):
        with pytest.raises(DefinitionError, match=f"Lock: .*{said}"):
            declare(**options)

    @pytest.mark.parametrize("name", ["table", "initial"])
    def test_refuse_a_machine_that_lacks_one(self, name):
        options = {"table": TABLE, "initial": "new"}
        del options[name]

        with pytest.raises(DefinitionError, match=f"has no {name}"):
            type("Lock", (Machine,), options)

    def test_refuse_a_member_without_a_row(self):
        class States(StrEnum):
            NEW = "new"
            DONE = "done"
            LOST = "lost"

        with pytest.raises(DefinitionError, match=r"has no row for States.LOST"):
            declare(TABLE, States.NEW)

    @pytest.mark.parametrize("name", ["next", "timers", "working", "payloads"])
    @pytest.mark.parametrize("word", [task(), step])
    def test_refuse_a_task_that_is_called_like_an_option(self, name, word):
        def go(self): ...

        go.__name__ = name
        with pytest.raises(DefinitionError, match=r"name of an option of a machine"):
            declare(**{name: word(go)})


class TestBoundEvents:
    """Each move by them leaves a state that tasks are bound to, or comes to one."""

    def declared(self, **table):
        @task(on("asked", days=1))
        def remind(self): ...

        @task(after(days=3))
        def look(self): ...

        rows = {"asked": {"given": "calm", "kept": STAY}, "calm": {"over": "done", "ask": "asked"}, "done": {}}
        body = {"remind": remind, "look": look, "timers": {"calm": never}}
        return declare({**rows, **table}, "asked", **body).definition

    def test_are_those_that_always_do(self):
        assert self.declared().bound_events == {"given", "kept", "ask"}

    def test_are_not_those_that_a_state_ignores(self):
        calm = {"over": "done", "ask": "asked", "given": IGNORE}

        assert self.declared(calm=calm).bound_events == {"kept", "ask"}

    def test_are_not_those_that_lead_elsewhere_from_one_state(self):
        calm = {"ask": "asked", "given": "done"}

        assert self.declared(calm=calm).bound_events == {"kept", "ask"}

    def test_are_none_without_a_machine(self):
        @task(after(days=3))
        def look(self): ...

        assert type("Bare", (Timeline,), {"look": look}).definition.bound_events == frozenset()
        assert type("Bare", (Timeline,), {"look": look}).definition.loose_events == frozenset()

    def test_leave_those_loose_by_which_no_move_does(self):
        calm = {"over": "done", "ask": "asked", "kept": "done"}

        assert self.declared(calm=calm).loose_events == {"over"}

    def test_leave_none_loose_that_may_lead_back_to_one(self):
        calm = {"over": "done", "ask": "asked", "return": BACK}

        assert self.declared(calm=calm).loose_events == {"over"}

    def test_leave_all_loose_where_no_task_is_bound(self):
        rows = {
            "asked": {"given": "calm", "kept": STAY},
            "calm": {"over": "done", "ask": BACK, "given": IGNORE},
            "done": {},
        }
        definition = declare(rows, "asked", timers={"asked": never, "calm": never}).definition

        assert definition.loose_events == {"given", "kept", "over", "ask"}
        assert definition.bound_events == frozenset()

    def test_leave_the_others_beside_states(self):
        assert self.declared().keys_beside_states == {"lock.look"}


class TestAfterRun:
    def follower(self, **options):
        @task(after())
        def go(self): ...

        return type("Follower", (Timeline,), {"starts_on": after_run(declare(), **options), "go": go})

    @pytest.mark.parametrize("options", [{}, {"ended": "finished"}])
    def test_of_a_machine_is_refused_where_it_would_never_begin(self, options):
        with pytest.raises(DefinitionError, match="runs of a machine end by its table, which is an exit"):
            self.follower(**options)

    @pytest.mark.parametrize("ended", ["exit", "any"])
    def test_of_a_machine_counts_its_end_as_an_exit(self, ended):
        assert self.follower(ended=ended).definition


class TestThen:
    def test_shows_what_it_says(self):
        assert repr(Then("auth.ok", by="ada")) == "Then('auth.ok', by='ada')"

    def test_is_the_same_by_event_and_payload(self):
        assert Then(S.BOOKED, a=1) == Then("BOOKED", a=1) != Then("BOOKED", a=2)
