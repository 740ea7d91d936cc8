"""How pages speak of states and reasons: in plain words, beside the names that rows and the API have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from timeline.lifecycle import ReasonCode, State
from timeline.reading.dead_letters import FAILURES

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

    from timeline.models import ScheduledTask

FAILED_FOR_GOOD: Final = pgettext_lazy("timeline", "failed for good")
WILL_TRY_AGAIN: Final = pgettext_lazy("timeline", "will try again")

REASONS: Final[dict[ReasonCode, StrPromise]] = {
    ReasonCode.ERROR: _("an error"),
    ReasonCode.TIMEOUT: _("it took too long"),
    ReasonCode.WORKER_LOST: _("its worker was lost"),
    ReasonCode.IN_DOUBT: _("a step is in doubt"),
    ReasonCode.DEFINITION: _("its code changed"),
    ReasonCode.OPERATOR: _("somebody decided so"),
    ReasonCode.HANDLER: _("its handler decided so"),
    ReasonCode.GUARD: _("its condition said no"),
    ReasonCode.EXIT: _("an exit ended its run"),
    ReasonCode.RUN_ENDED: _("nothing else was left of its run"),
    ReasonCode.STATE: _("its machine left the state"),
    ReasonCode.THEN: _("it moved its machine"),
    ReasonCode.PREDECESSOR: _("what it follows did not complete"),
    ReasonCode.SUPERSEDED: _("it is planned otherwise now"),
    ReasonCode.MOVED: _("it was moved"),
    ReasonCode.EXPIRED: _("it was too late"),
    ReasonCode.ENTITY_GONE: _("what it is about is gone"),
    ReasonCode.UNTIL: _("its series has ended"),
    ReasonCode.OVERLAP: _("the run before was still open"),
    ReasonCode.WAITING: _("it waits for an event, or sleeps"),
    ReasonCode.EVENT: _("an event woke it"),
    ReasonCode.HOLD: _("it was on hold"),
    ReasonCode.RETRY_AFTER: _("it asked to be tried later"),
    ReasonCode.RELEASED: _("its worker stopped before it began"),
    ReasonCode.SHADOW: _("its timeline is in shadow"),
    ReasonCode.DONE: _("it was done"),
}


def state_of(task: ScheduledTask) -> str:
    """The state of a task, in words."""
    if task.state == State.DISCARDED:
        return str(FAILED_FOR_GOOD)
    if task.state == State.COMPLETED and (failed := task.failures + task.lost):
        if failed == 1:
            return gettext("completed at the second try")
        return gettext("completed at try %(number)s") % {"number": failed + 1}
    if task.state == State.RETRYABLE:
        return str(WILL_TRY_AGAIN if task.reason_code in FAILURES else pgettext_lazy("timeline", "rests"))
    return str(State(task.state).label)


def state_titles() -> dict[str, str]:
    """States as the filter offers them: where the words differ, with the state's own name."""
    said = {
        State.RETRYABLE: pgettext_lazy("timeline", "will try again, or rests"),
        State.DISCARDED: FAILED_FOR_GOOD,
    }
    return {state.value: f"{said[state]} ({state.value})" if state in said else str(state.label) for state in State}
