"""What cannot be done as things are. Nothing was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from django.utils.translation import gettext, pgettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from timeline.exceptions.base import Refusal, TimelineError, clipped
from timeline.exceptions.inputs import InvalidInput
from timeline.told_times import told_time

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


_ASKED_FOR = (
    pgettext_lazy("timeline", "move"),
    pgettext_lazy("timeline", "redrive"),
    pgettext_lazy("timeline", "run now"),
    pgettext_lazy("timeline", "step happened"),
    pgettext_lazy("timeline", "forget step"),
    pgettext_lazy("timeline", "go on"),
)  # For the catalogue: no triggers. Features have others.


class TransitionNotAllowed(Refusal):
    """
    The lifecycle has no such move from this state; nothing was written. See ``remedy``.

    ``verb`` is what somebody wanted to do, as they know it; empty: the trigger. No ``task``: any.
    """

    message = _("state: %(which)s is %(state)s, which allows no '%(trigger)s'. %(remedy)s")

    def __init__(self, state: str, trigger: str, remedy: StrOrPromise, task: object = "", verb: str = "") -> None:
        self.state = state
        self.trigger = trigger
        self.verb = verb or trigger
        self.task = task
        super().__init__(remedy)

    def _values(self) -> Mapping[str, object]:
        which = gettext("task %(task)s") % vars(self) if self.task else gettext("a task")
        # A state is called in English what it is called in code, and so is a trigger.
        return {
            **super()._values(),
            "which": which,
            "state": pgettext("timeline", self.state),
            "trigger": pgettext("timeline", self.verb),
        }


class NoOpenRun(TimelineError):
    """The entity has no open run of this timeline. Start one first, or check the key."""

    message = _("timeline: %(entity)s has no open run of %(timeline)r (key %(key)r). Start one first.")

    def __init__(self, timeline: str, entity: str, key: str) -> None:
        self.timeline = timeline
        self.entity = entity
        self.key = key


class RunEnded(Refusal):
    """
    An exit ended the run of this task, or came after it, so the task is no longer true. Start a new run instead.

    ``end_reason`` (the exit, or what somebody wrote) is in no text, since not everybody may read it.
    """

    message = _("run: the run of task %(task)s has ended. %(remedy)s")

    def __init__(self, task: object, end_reason: str) -> None:
        self.task = task
        self.end_reason = end_reason
        super().__init__(_("Start a new run instead."))


class AlreadyOpen(Refusal):
    """Another revision of this task is open already. Move, run or cancel that one."""

    message = _("task: %(task)s is open already. %(remedy)s")

    def __init__(self, task: object) -> None:
        self.task = task
        super().__init__(_("Move, run or cancel it instead of making another."))


class AlreadyReleased(Refusal):
    """Somebody has released this hold, or its time has come: it counted until ``lifted_at``. Polls do the rest."""

    message = _("hold: %(hold)s was released already. %(remedy)s")

    def __init__(self, hold: object, lifted_at: datetime) -> None:
        self.hold = hold
        self.lifted_at = lifted_at
        super().__init__(_("Nothing is left to do."))


class ChangedSince(Refusal):
    """
    The task has changed since it was looked at; nothing was written. Look at it again, and decide anew.

    ``seq`` is what to give as seen then. ``actor`` and ``reason`` of the last change are in no text, since not everybody may
    read them. ``changes`` is for whoever catches it, and knows who asks: what has become of the task since, in sentences.
    """

    message = _("task: %(task)s has changed since you looked: it is %(state)s by now, due %(due)s. %(remedy)s")

    def __init__(
        self,
        task: object,
        state: str,
        scheduled_at: datetime,
        *,
        seq: int = 0,
        actor: str = "",
        reason: str = "",
        remedy: StrOrPromise = "",
    ) -> None:
        self.task = task
        self.state = state
        self.scheduled_at = scheduled_at
        self.seq = seq
        self.actor = actor
        self.reason = reason
        self.changes: Sequence[str] = ()
        super().__init__(remedy or _("Look at it again, and decide anew."))

    def _values(self) -> Mapping[str, object]:
        due = told_time(self.scheduled_at)
        return {**super()._values(), "state": pgettext("timeline", self.state), "due": due}


class AlreadyDecided(Refusal):
    """Somebody (no ``actor``: the host's code) has approved or rejected it already; that stands. Nothing was written."""

    message = _("task: %(task)s was decided already: %(event)s%(who)s, %(when)s. %(remedy)s")

    def __init__(self, task: object, event: str, actor: str, at: datetime) -> None:
        self.task = task
        self.event = event
        self.actor = actor
        self.at = at
        super().__init__(_("The first decision stands."))

    def _values(self) -> Mapping[str, object]:
        who = gettext(" by %(actor)s") % {"actor": self.actor} if self.actor else ""
        return {**super()._values(), "who": who, "when": told_time(self.at)}


class AlreadyTaken(Refusal):
    """Somebody else has taken what waits. Nothing was written; whoever may answer still can, and can hand it over."""

    message = _("%(holder)s has it since %(when)s. %(remedy)s")

    def __init__(self, item: object, holder: str, at: datetime) -> None:
        self.item = item
        self.holder = holder
        self.at = at
        super().__init__(_("Whoever may answer can also hand it over."))

    def _values(self) -> Mapping[str, object]:
        return {**super()._values(), "when": told_time(self.at)}


class DecidedTooLate(Refusal):
    """The time in which it could be approved or rejected is over, since ``until``; nothing was written."""

    message = _("task: %(task)s was to be decided before %(when)s. %(remedy)s")

    def __init__(self, task: object, until: datetime) -> None:
        self.task = task
        self.until = until
        super().__init__(_("It goes on without a decision."))

    def _values(self) -> Mapping[str, object]:
        return {**super()._values(), "when": told_time(self.until)}


class MoveNotAllowed(TransitionNotAllowed):
    """
    A machine's state does not take this event, or is not the one expected; nothing was written. ``takes`` says what it would.

    ``moved``: it is in that state for another time than the one that was expected. No ``entity``: a table alone was asked.
    ``unmet``: the conditions of the event, none of which holds.
    """

    message = _("state: %(which)s is %(state)s, which does not take '%(event)s'. %(remedy)s")

    def __init__(
        self,
        machine: str,
        entity: str,
        state: str,
        event: str,
        takes: list[str],
        *,
        expected: str = "",
        ended: bool = False,
        moved: bool = False,
        unmet: Sequence[str] = (),
    ) -> None:
        self.machine = machine
        self.unmet = list(unmet)
        self.entity = entity
        self.moved = moved
        self.event = event
        self.takes = takes
        self.expected = expected
        self.ended = ended
        super().__init__(state, event, "")

    def _values(self) -> Mapping[str, object]:
        which = gettext("%(machine)s of %(entity)s") % vars(self) if self.entity else self.machine
        # States and events of a machine are the host's own words.
        return {**super()._values(), "which": which, "state": self.state or "''"}

    def __str__(self) -> str:
        if self.moved:
            said = _("state: %(which)s has moved since, and is %(state)s. %(remedy)s")
            return str(said) % self._values()
        if self.expected:
            said = _("state: %(which)s is %(state)s, not %(expected)s as expected by '%(event)s'. %(remedy)s")
            return str(said) % self._values()
        return super().__str__()

    @property
    def remedy(self) -> str:
        """What it would take, in the present language."""
        if self.expected or self.moved:
            return gettext("Look at it again.")
        if self.ended:
            return gettext("It has ended; start a new run instead.")
        if self.unmet:
            return gettext("None of its conditions holds: %(conditions)s.") % {"conditions": ", ".join(self.unmet)}
        if not self.takes:
            return gettext("Its table does not know this state.")
        return gettext("It takes %(events)s.") % {"events": ", ".join(self.takes)}


class MovesTooOften(TimelineError):
    """
    A machine moves in a circle: handlers and timers have moved a run as often as they may within an hour (``most``). Look at
    what leads round, let the run rest somewhere, or raise ``most_moves``.
    """

    message = _(
        "%(machine)s of %(entity)s has moved %(most)d times within an hour, and is not moved by '%(event)s'. "
        "Let it rest between, or raise most_moves."
    )

    def __init__(self, machine: str, entity: str, most: int, event: str) -> None:
        self.machine = machine
        self.entity = entity
        self.most = most
        self.event = event


class UnknownMachineEvent(InvalidInput):
    """No state of the machine takes this event. Correct its name (``near`` look like it), or add it to the table."""

    def __init__(self, machine: str, name: str, near: list[str], known: list[str]) -> None:
        self.machine = machine
        self.name = name
        self.near = near
        self.known = known
        said = {"machine": machine, "name": clipped(name), "near": ", ".join(map(repr, near or known))}
        problem = _("No state of the machine %(machine)r takes the event %(name)r.")
        super().__init__("name", problem, _("Use one such as %(near)s."), **said)


class StateMoved(Refusal):
    """
    A row is saved with another state than it has. Saving moves no machine: ``emit`` does. Nothing was written.

    ``given`` is what the instance says, ``state`` what the row has, or, if it ``is_new``, begins with.
    """

    message = _("state: %(entity)s is in the state %(state)r, and is saved with %(given)r. %(remedy)s")

    def __init__(self, entity: str, given: str, state: str, *, is_new: bool = False) -> None:
        self.entity = entity
        self.given = given
        self.state = state
        self.is_new = is_new
        super().__init__(_("Call emit(…) to move it, or refresh_from_db() to see where it is."))

    def __str__(self) -> str:
        if self.is_new:
            return str(
                _("state: %(entity)s begins in the state %(state)r, and is saved with %(given)r. %(remedy)s")
            ) % (self._values())
        return super().__str__()

    @property
    def remedy(self) -> str:
        """What can be done, in the present language."""
        if self.is_new:
            return gettext("Leave the state out; call emit(…) once the row is there.")
        return super().remedy
