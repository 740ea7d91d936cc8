"""
The life of a task: eight states and the only ways between them. Pure rules.

``TRANSITIONS`` is the only table: final states, CHECKs, the database trigger and tests are made from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from timeline.exceptions import TransitionNotAllowed
from timeline.payloads import check_is_text

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise


class State(TextChoices):
    """Where a task stands."""

    SCHEDULED = "scheduled", pgettext_lazy("timeline", "scheduled")
    AVAILABLE = "available", pgettext_lazy("timeline", "available")
    PENDING = "pending", pgettext_lazy("timeline", "pending")
    ACTIVE = "active", pgettext_lazy("timeline", "active")
    RETRYABLE = "retryable", pgettext_lazy("timeline", "retryable")
    COMPLETED = "completed", pgettext_lazy("timeline", "completed")
    DISCARDED = "discarded", pgettext_lazy("timeline", "discarded")
    CANCELLED = "cancelled", pgettext_lazy("timeline", "cancelled")


class Trigger(TextChoices):
    """What moves a task from one state to another."""

    DUE = "due", pgettext_lazy("timeline", "due")
    CLAIM = "claim", pgettext_lazy("timeline", "claim")
    START = "start", pgettext_lazy("timeline", "start")
    COMPLETE = "complete", pgettext_lazy("timeline", "complete")
    RETRY = "retry", pgettext_lazy("timeline", "retry")
    DISCARD = "discard", pgettext_lazy("timeline", "discard")
    CANCEL = "cancel", pgettext_lazy("timeline", "cancel")


# One row per (state, trigger). A state that starts no row is final.
TRANSITIONS: Final[Mapping[tuple[State, Trigger], State]] = {
    (State.SCHEDULED, Trigger.DUE): State.AVAILABLE,
    (State.RETRYABLE, Trigger.DUE): State.AVAILABLE,
    (State.AVAILABLE, Trigger.CLAIM): State.PENDING,
    (State.AVAILABLE, Trigger.START): State.ACTIVE,
    (State.PENDING, Trigger.START): State.ACTIVE,
    (State.ACTIVE, Trigger.COMPLETE): State.COMPLETED,
    (State.ACTIVE, Trigger.RETRY): State.RETRYABLE,
    (State.ACTIVE, Trigger.DISCARD): State.DISCARDED,
    (State.SCHEDULED, Trigger.CANCEL): State.CANCELLED,
    (State.AVAILABLE, Trigger.CANCEL): State.CANCELLED,
    (State.PENDING, Trigger.CANCEL): State.CANCELLED,
    (State.ACTIVE, Trigger.CANCEL): State.CANCELLED,
    (State.RETRYABLE, Trigger.CANCEL): State.CANCELLED,
}

# Two moves that one write may make, because nothing happens between them. The log still has both entries.
COMPOSED: Final[frozenset[tuple[State, State]]] = frozenset(
    {
        (State.SCHEDULED, State.PENDING),
        (State.RETRYABLE, State.PENDING),
        (State.SCHEDULED, State.ACTIVE),
        (State.RETRYABLE, State.ACTIVE),
    }
)

FINAL: Final = frozenset(State) - {state for state, _trigger in TRANSITIONS}
OPEN: Final = frozenset(State) - FINAL
CREATED_AS: Final = frozenset({State.SCHEDULED, State.AVAILABLE})
WAITING: Final = frozenset({State.SCHEDULED, State.RETRYABLE})  # Only rows in these are moved to another time in place.
LEASED: Final = frozenset({State.PENDING, State.ACTIVE})  # Somebody holds the row, until its lease runs out.
ALLOWED_PAIRS: Final = frozenset({(source, target) for (source, _trigger), target in TRANSITIONS.items()}) | COMPOSED

_REMEDIES: Final[Mapping[State, StrPromise]] = {
    State.SCHEDULED: _("Wait until it is due, or run it now."),
    State.AVAILABLE: _("It is due already and waits for a worker; cancel it, or let it run."),
    State.PENDING: _("It is on its way to a worker; cancel it, or let it run."),
    State.ACTIVE: _("A worker runs it right now; cancel it, or wait for its outcome."),
    State.RETRYABLE: _("Wait until it is due again, or run it now."),
    State.COMPLETED: _("It has ended; redrive it to make a new revision."),
    State.DISCARDED: _("It has ended; redrive it to make a new revision."),
    State.CANCELLED: _("It has ended; redrive it to make a new revision."),
}


class ReasonCode(TextChoices):
    """Why a task came to where it is. A closed set; the text beside it is free."""

    DONE = "done", pgettext_lazy("timeline", "done")
    EXIT = "exit", pgettext_lazy("timeline", "exit")
    GUARD = "guard", pgettext_lazy("timeline", "guard")
    HANDLER = "handler", pgettext_lazy("timeline", "handler's decision")
    OPERATOR = "operator", pgettext_lazy("timeline", "operator")
    SUPERSEDED = "superseded", pgettext_lazy("timeline", "superseded")
    MOVED = "moved", pgettext_lazy("timeline", "moved")
    PREDECESSOR = "predecessor", pgettext_lazy("timeline", "predecessor")
    EXPIRED = "expired", pgettext_lazy("timeline", "expired")
    ENTITY_GONE = "entity_gone", pgettext_lazy("timeline", "entity gone")
    DEFINITION = "definition", pgettext_lazy("timeline", "definition")
    WORKER_LOST = "worker_lost", pgettext_lazy("timeline", "worker lost")
    RELEASED = "released", pgettext_lazy("timeline", "released")
    ERROR = "error", pgettext_lazy("timeline", "error")
    TIMEOUT = "timeout", pgettext_lazy("timeline", "timeout")
    RETRY_AFTER = "retry_after", pgettext_lazy("timeline", "asked to be retried later")
    SHADOW = "shadow", pgettext_lazy("timeline", "in shadow")
    IN_DOUBT = "in_doubt", pgettext_lazy("timeline", "in doubt")
    RUN_ENDED = "run_ended", pgettext_lazy("timeline", "run ended")
    OVERLAP = "overlap", pgettext_lazy("timeline", "overlap")
    WAITING = "waiting", pgettext_lazy("timeline", "waiting")
    EVENT = "event", pgettext_lazy("timeline", "event")
    UNTIL = "until", pgettext_lazy("timeline", "until")
    HOLD = "hold", pgettext_lazy("timeline", "hold")
    STATE = "state", pgettext_lazy("timeline", "state left")
    THEN = "then", pgettext_lazy("timeline", "moved its machine")


# Reasons of a task that waits for an event, was woken by it, or was given back because of a hold. Its last attempt has neither
# failed nor been lost, so it counts as if there had been none.
AT_REST: Final = frozenset({ReasonCode.WAITING, ReasonCode.EVENT, ReasonCode.HOLD})


class RunEnd(StrEnum):
    """How a run ended. A closed set; the text beside it is free."""

    FINISHED = "finished"  # No task was left.
    EXIT = "exit"  # An event; the text is the name of the exit.
    LEFT = "left"  # By hand; the text is what somebody wrote.
    ENTITY_GONE = "entity_gone"


@dataclass(frozen=True, slots=True)
class Reason:
    """
    Why, for people and machines.

    Args:
        code: From the closed set.
        text: Shown to people; cut at 200 characters when stored.
        actor: Who decided, as shown in the log; empty for the system itself.
        said: Which sentence of ``timeline.reasons`` the text is, and its values, where it has some; kept in the log.
    """

    code: ReasonCode
    text: str = ""
    actor: str = ""
    said: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def operator(cls, text: str, actor: str = "") -> Reason:
        """A person, or the host's code in a person's name, decided; ``InvalidInput`` for what is no text."""
        check_is_text("reason", text)
        check_is_text("actor", actor)
        return cls(ReasonCode.OPERATOR, text, actor)


def target(state: State, *triggers: Trigger, task: object = "", verb: str = "") -> State:
    """The state to which the triggers lead, one or two of ``COMPOSED``; ``TransitionNotAllowed`` if there is no such move."""
    end = state
    for trigger in triggers:
        if (end, trigger) not in TRANSITIONS:
            raise TransitionNotAllowed(end.value, trigger.value, _REMEDIES[end], task, verb)
        end = TRANSITIONS[end, trigger]
    if len(triggers) > 2 or (len(triggers) == 2 and (state, end) not in COMPOSED):
        raise TransitionNotAllowed(state.value, " + ".join(triggers), _("Make one move at a time."), task)
    return end
