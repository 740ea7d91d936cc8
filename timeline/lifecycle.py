"""
The life of a task: eight states and the only ways between them.

``TRANSITIONS`` stands once, here. Final states, the CHECK constraints, the database trigger, the docs table and the
tests derive from it. Pure rules: no database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from timeline.exceptions import TransitionNotAllowed

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise


class State(TextChoices):
    """Where a task stands."""

    SCHEDULED = "scheduled", _("scheduled")
    AVAILABLE = "available", _("available")
    PENDING = "pending", _("pending")
    ACTIVE = "active", _("active")
    RETRYABLE = "retryable", _("retryable")
    COMPLETED = "completed", _("completed")
    DISCARDED = "discarded", _("discarded")
    CANCELLED = "cancelled", _("cancelled")


class Trigger(TextChoices):
    """What moves a task from one state to another."""

    DUE = "due", _("due")
    CLAIM = "claim", _("claim")
    START = "start", _("start")
    COMPLETE = "complete", _("complete")
    RETRY = "retry", _("retry")
    DISCARD = "discard", _("discard")
    CANCEL = "cancel", _("cancel")


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

# What one write may do in two moves, because nothing lies between. The log still has both entries.
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
WAITING: Final = frozenset({State.SCHEDULED, State.RETRYABLE})  # Only these move in time in place.
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

    DONE = "done", _("done")
    EXIT = "exit", _("exit")
    GUARD = "guard", _("guard")
    HANDLER = "handler", _("handler's decision")
    OPERATOR = "operator", _("operator")
    SUPERSEDED = "superseded", _("superseded")
    MOVED = "moved", _("moved")
    PREDECESSOR = "predecessor", _("predecessor")
    EXPIRED = "expired", _("expired")
    ENTITY_GONE = "entity_gone", _("entity gone")
    DEFINITION = "definition", _("definition")
    WORKER_LOST = "worker_lost", _("worker lost")
    RELEASED = "released", _("released")
    ERROR = "error", _("error")
    TIMEOUT = "timeout", _("timeout")
    RETRY_AFTER = "retry_after", _("asked to be retried later")
    SHADOW = "shadow", _("in shadow")


@dataclass(frozen=True, slots=True)
class Reason:
    """
    Why, for people and machines.

    Args:
        code: From the closed set.
        text: Shown to people; cut at 200 characters when stored.
        actor: Who decided, as shown in the log; empty for the system itself.
    """

    code: ReasonCode
    text: str = ""
    actor: str = ""

    @classmethod
    def operator(cls, text: str, actor: str = "") -> Reason:
        """A person, or the host's code in a person's name, decided."""
        return cls(ReasonCode.OPERATOR, text, actor)


def target(state: State, *triggers: Trigger, task: object = "") -> State:
    """
    Say where the triggers lead, one after the other.

    Args:
        state: Where the task stands.
        triggers: One; or two, where one write may make both moves.
        task: Named in the error only.

    Raises:
        TransitionNotAllowed: if the table has no such move, or the pair may not be composed.
    """
    end = state
    for trigger in triggers:
        if (end, trigger) not in TRANSITIONS:
            raise TransitionNotAllowed(end.value, trigger.value, _REMEDIES[end], task)
        end = TRANSITIONS[end, trigger]
    if len(triggers) > 2 or (len(triggers) == 2 and (state, end) not in COMPOSED):
        raise TransitionNotAllowed(state.value, " + ".join(triggers), _("Make one move at a time."), task)
    return end
