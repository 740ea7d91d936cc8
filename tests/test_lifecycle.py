"""The table of the lifecycle, and what derives from it."""

from itertools import product

import pytest
from django.utils.translation import gettext_lazy

from timeline.exceptions import InvalidInput, TransitionNotAllowed
from timeline.lifecycle import (
    ALLOWED_PAIRS,
    COMPOSED,
    CREATED_AS,
    FINAL,
    LEASED,
    OPEN,
    TRANSITIONS,
    WAITING,
    Reason,
    ReasonCode,
    State,
    Trigger,
    target,
)

REFUSED = [pair for pair in product(State, Trigger) if pair not in TRANSITIONS]
TWO_MOVES = [
    (state, first, second, TRANSITIONS[TRANSITIONS[state, first], second])
    for state, first, second in product(State, Trigger, Trigger)
    if (state, first) in TRANSITIONS and (TRANSITIONS[state, first], second) in TRANSITIONS
]


class TestTransitions:
    def test_leave_nothing_after_an_end(self):
        assert {State.COMPLETED, State.DISCARDED, State.CANCELLED} == FINAL
        assert not FINAL & OPEN
        assert frozenset(State) == FINAL | OPEN

    def test_lead_from_creation_to_every_other_state(self):
        reached = set(CREATED_AS)

        for _ in State:
            reached |= {end for (start, _trigger), end in TRANSITIONS.items() if start in reached}

        assert reached == set(State)

    def test_use_every_trigger(self):
        assert {trigger for _state, trigger in TRANSITIONS} == set(Trigger)

    @pytest.mark.parametrize("state", sorted(OPEN))
    def test_let_whatever_is_open_be_cancelled(self, state):
        assert TRANSITIONS[state, Trigger.CANCEL] == State.CANCELLED

    @pytest.mark.parametrize("trigger", [Trigger.COMPLETE, Trigger.RETRY, Trigger.DISCARD])
    def test_record_an_outcome_of_what_runs_only(self, trigger):
        assert [state for state, known in TRANSITIONS if known == trigger] == [State.ACTIVE]

    @pytest.mark.parametrize("trigger", Trigger)
    def test_lead_from_a_trigger_to_one_state(self, trigger):
        assert len({end for (_state, known), end in TRANSITIONS.items() if known == trigger}) == 1

    def test_never_lead_back_to_scheduled(self):
        assert State.SCHEDULED not in TRANSITIONS.values()

    def test_hold_a_lease_only_on_the_way_to_a_worker_and_in_it(self):
        assert {State.PENDING, State.ACTIVE} == LEASED
        assert not LEASED & WAITING

    @pytest.mark.parametrize("state", sorted(WAITING))
    def test_make_due_what_waits(self, state):
        assert TRANSITIONS[state, Trigger.DUE] == State.AVAILABLE


class TestComposed:
    def test_has_what_waits_taken_in_one_write_and_nothing_else(self):
        assert frozenset(product(WAITING, LEASED)) == COMPOSED

    @pytest.mark.parametrize("pair", sorted(COMPOSED))
    def test_has_only_pairs_two_moves_apart(self, pair):
        assert pair in {(start, end) for start, _first, _second, end in TWO_MOVES}
        assert pair not in {(start, end) for (start, _trigger), end in TRANSITIONS.items()}

    def test_is_allowed_beside_the_table_and_nothing_else_is(self):
        single = {(start, end) for (start, _trigger), end in TRANSITIONS.items()}

        assert single < ALLOWED_PAIRS
        assert ALLOWED_PAIRS - single == COMPOSED


class TestTarget:
    @pytest.mark.parametrize(("state", "trigger"), TRANSITIONS)
    def test_says_where_a_move_of_the_table_leads(self, state, trigger):
        assert target(state, trigger) is TRANSITIONS[state, trigger]

    @pytest.mark.parametrize(("state", "trigger"), REFUSED)
    def test_refuses_a_move_the_table_does_not_have(self, state, trigger):
        with pytest.raises(TransitionNotAllowed) as caught:
            target(state, trigger, task="T1")

        assert (caught.value.state, caught.value.trigger, caught.value.task) == (state.value, trigger.value, "T1")
        assert caught.value.remedy
        assert f"task T1 is {state.value}, which allows no {trigger.value!r}" in str(caught.value)
        assert str(caught.value).endswith(caught.value.remedy)

    @pytest.mark.parametrize("state", sorted(FINAL))
    @pytest.mark.parametrize("trigger", Trigger)
    def test_says_of_what_has_ended_how_to_do_it_again(self, state, trigger):
        with pytest.raises(TransitionNotAllowed, match="redrive it"):
            target(state, trigger)

    @pytest.mark.parametrize(("state", "first", "second", "end"), [m for m in TWO_MOVES if (m[0], m[3]) in COMPOSED])
    def test_makes_two_moves_where_they_may_be_composed(self, state, first, second, end):
        assert target(state, first, second) is end

    @pytest.mark.parametrize(
        ("state", "first", "second", "end"), [m for m in TWO_MOVES if (m[0], m[3]) not in COMPOSED]
    )
    def test_refuses_two_moves_that_may_not_be_composed(self, state, first, second, end):
        """Each of the two is legal by itself."""
        with pytest.raises(TransitionNotAllowed, match="one move at a time") as caught:
            target(state, first, second)

        assert caught.value.state == state.value
        assert caught.value.trigger == f"{first} + {second}"

    def test_refuses_three_moves_though_their_ends_may_be_composed(self):
        with pytest.raises(TransitionNotAllowed, match="one move at a time"):
            target(State.SCHEDULED, Trigger.DUE, Trigger.CLAIM, Trigger.START)

    def test_names_the_state_in_which_the_second_move_fails(self):
        with pytest.raises(TransitionNotAllowed) as caught:
            target(State.SCHEDULED, Trigger.DUE, Trigger.COMPLETE)

        assert (caught.value.state, caught.value.trigger) == ("available", "complete")

    def test_needs_no_task_for_its_refusal(self):
        with pytest.raises(TransitionNotAllowed, match="a task is completed"):
            target(State.COMPLETED, Trigger.DUE)


class TestReason:
    def test_of_an_operator_has_the_code_and_who_decided(self):
        reason = Reason.operator("trial converted", actor="ada")

        assert reason == Reason(ReasonCode.OPERATOR, "trial converted", "ada")

    @pytest.mark.parametrize("said", [5, None, b"ada", gettext_lazy("Save")], ids=ascii)
    @pytest.mark.parametrize("name", ["reason", "actor"])
    def test_of_an_operator_is_text(self, name, said):
        """Also a text that is translated only when it is shown is refused: rows keep what was said, in one language."""
        texts = {"reason": "x", "actor": "ada", name: said}

        with pytest.raises(InvalidInput, match=f"^{name}: .* Give text"):
            Reason.operator(texts["reason"], texts["actor"])

    def test_of_the_system_has_no_actor(self):
        assert Reason.operator("trial converted").actor == ""
        assert Reason(ReasonCode.EXIT).text == ""

    def test_can_not_be_changed(self):
        reason = Reason.operator("trial converted")

        with pytest.raises(AttributeError):
            reason.code = ReasonCode.DONE
