"""What a person is refused is called as they know it: by the verb, and never by the trigger behind it."""

from __future__ import annotations

import pytest
from django.utils import translation

from timeline import shortcuts
from timeline.exceptions import TransitionNotAllowed
from timeline.lifecycle import State

VERBS = {
    "cancel": ("cancel", State.COMPLETED, {}),
    "move": ("move", State.COMPLETED, {}),
    "run now": ("run_now", State.CANCELLED, {}),
    "redrive": ("redrive", State.SCHEDULED, {}),
    "step happened": ("step_happened", State.ACTIVE, {"step": "send"}),
    "forget step": ("forget_step", State.ACTIVE, {"step": "send"}),
    "go on": ("go_on", State.ACTIVE, {}),
}


@pytest.fixture
def refused(make_task, now):
    def ask(verb):
        name, state, given = VERBS[verb]
        if name == "move":
            given = {"at": now}
        with pytest.raises(TransitionNotAllowed) as caught:
            getattr(shortcuts, name)(make_task(state=state), **given, reason="they asked")
        return caught.value

    return ask


@pytest.mark.parametrize("verb", VERBS)
def test_names_the_verb(refused, verb):
    error = refused(verb)

    assert f"which allows no '{verb}'." in str(error)
    assert error.verb == verb


@pytest.mark.parametrize("verb", VERBS)
def test_names_it_in_german(refused, verb):
    error = refused(verb)

    with translation.override("de"):
        assert f"„{verb}“" not in str(error)
        assert "nicht zulässt" in str(error)


def test_names_the_trigger_where_no_person_has_asked():
    error = TransitionNotAllowed("completed", "claim", "Redrive it.")

    assert error.verb == error.trigger == "claim"
