"""What can be done with tasks, and how the pages speak of it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.utils.translation import gettext_lazy, ngettext_lazy, pgettext_lazy

from timeline.policy import Action

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise


class Decision(StrEnum):
    """What somebody may say of one task that rests because of a step: each is the action to decide."""

    STEP_HAPPENED = "step_happened"
    FORGET_STEP = "forget_step"
    GO_ON = "go_on"


Deed = Action | Decision


def action_of(deed: Deed) -> Action:
    """The action that the policy is asked about."""
    return Action.DECIDE if isinstance(deed, Decision) else deed


class Wording(NamedTuple):
    """
    How a page speaks of an action.

    Args:
        verb: On buttons.
        asks: What happens, with the number of tasks; of decisions, with the name of the step.
        done: What happened, as above.
        means: What it means, in a sentence.
    """

    verb: StrPromise
    asks: Any
    done: Any
    means: StrPromise


WORDINGS: Final[Mapping[Deed, Wording]] = {
    Action.CANCEL: Wording(
        pgettext_lazy("timeline", "Cancel"),
        ngettext_lazy("Cancel %(count)d task", "Cancel %(count)d tasks", "count"),
        ngettext_lazy("%(count)d task was cancelled.", "%(count)d tasks were cancelled.", "count"),
        gettext_lazy("A cancelled task does not run. What a worker is doing for it right now is rolled back."),
    ),
    Action.MOVE: Wording(
        pgettext_lazy("timeline", "Move"),
        ngettext_lazy("Move %(count)d task", "Move %(count)d tasks", "count"),
        ngettext_lazy("%(count)d task was moved.", "%(count)d tasks were moved.", "count"),
        gettext_lazy("A moved task runs at another time. If the date it hangs on changes later, that date wins."),
    ),
    Action.RUN_NOW: Wording(
        pgettext_lazy("timeline", "Run now"),
        ngettext_lazy("Run %(count)d task now", "Run %(count)d tasks now", "count"),
        ngettext_lazy("%(count)d task is due now.", "%(count)d tasks are due now.", "count"),
        gettext_lazy("The task is due at once. Its guards are read all the same."),
    ),
    Action.REDRIVE: Wording(
        pgettext_lazy("timeline", "Redrive"),
        ngettext_lazy("Redrive %(count)d task", "Redrive %(count)d tasks", "count"),
        ngettext_lazy("%(count)d task was redriven.", "%(count)d tasks were redriven.", "count"),
        gettext_lazy("What has ended stays as it is; a new task, its next revision, is due at once."),
    ),
    Action.APPROVE: Wording(
        pgettext_lazy("timeline", "Approve"),
        gettext_lazy("Approve it"),
        gettext_lazy("It is approved. The task goes on."),
        gettext_lazy("The task goes on at once, and is told that you approved it. The first decision stands."),
    ),
    Action.REJECT: Wording(
        pgettext_lazy("timeline", "Reject"),
        gettext_lazy("Reject it"),
        gettext_lazy("It is rejected. The task goes on."),
        gettext_lazy("The task goes on at once, and is told that you rejected it. The first decision stands."),
    ),
    Decision.STEP_HAPPENED: Wording(
        gettext_lazy("It happened"),
        gettext_lazy("Say that step %(step)s happened"),
        gettext_lazy("Step %(step)s counts as done. The task goes on."),
        gettext_lazy("The step counts as done and is not called again. The task goes on behind it at once."),
    ),
    Decision.FORGET_STEP: Wording(
        gettext_lazy("Do it again"),
        gettext_lazy("Do step %(step)s again"),
        gettext_lazy("Step %(step)s is forgotten. The task goes on, and does it again."),
        gettext_lazy(
            "What is recorded of the step is deleted. The task goes on at once, and calls the step again: if it has happened, "
            "it happens twice."
        ),
    ),
    Decision.GO_ON: Wording(
        gettext_lazy("Go on"),
        gettext_lazy("Let the task go on"),
        gettext_lazy("The task goes on."),
        gettext_lazy(
            "All steps that are done count, in whatever order. The task goes on at once, with the code as it is now."
        ),
    ),
}
