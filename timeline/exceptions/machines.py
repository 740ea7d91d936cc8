"""What machines refuse. Nothing was written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from timeline.exceptions.base import Refusal, TimelineError, clipped
from timeline.exceptions.inputs import InvalidInput
from timeline.exceptions.refusals import TransitionNotAllowed

if TYPE_CHECKING:
    pass


class MoveNotAllowed(TransitionNotAllowed):
    """
    A machine's state does not take this event, or is not the one expected; nothing was written. ``takes`` says what it would.

    Args:
        machine: Its name.
        entity: Whose; empty: nobody's, as of a table alone.
        state: In which it is.
        event: What was emitted.
        takes: Events that this state takes.
        expected: The state that was expected; empty: any.
        ended: Whether the run has ended.
        moved: Whether it is in that state for another time than the one that was expected.
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
    ) -> None:
        self.machine = machine
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
        if not self.takes:
            return gettext("Its table does not know this state.")
        return gettext("It takes %(events)s.") % {"events": ", ".join(self.takes)}


class MovesTooOften(TimelineError):
    """
    A machine moves in a circle: handlers and timers have moved a run as often as they may within an hour. Look at what leads
    round, let the run rest somewhere, or raise ``most_moves``.

    Args:
        machine: Its name.
        entity: Whose.
        most: So many moves an hour.
        event: That would have moved it once more.
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
    """
    No state of the machine takes this event. Correct its name, or add it to the table.

    Args:
        machine: Its name.
        name: Of the event.
        near: Names of its events that look like it.
        known: All its events.
    """

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

    Args:
        entity: Whose state it is.
        given: What the instance says.
        state: In which the row is, or begins.
        is_new: Whether the row is inserted.
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
