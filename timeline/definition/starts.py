"""``created()`` and ``after_run(…)``: starts that need no event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from django.utils.translation import gettext as _

from timeline.lifecycle import RunEnd
from timeline.timing.keywords import known_keywords
from timeline.timing.offsets import Problem

if TYPE_CHECKING:
    from timeline.definition.definitions import Definition
    from timeline.definition.timelines import Timeline

Ended = Literal["completed", "finished", "exit", "left", "any"]

_ENDS: Final[dict[str, frozenset[str]]] = {
    "completed": frozenset({RunEnd.FINISHED.value}),
    "finished": frozenset({RunEnd.FINISHED.value}),
    "exit": frozenset({RunEnd.EXIT.value}),
    "left": frozenset({RunEnd.LEFT.value}),
    "any": frozenset({RunEnd.FINISHED.value, RunEnd.EXIT.value, RunEnd.LEFT.value}),
}


class Created:
    """A start of its own: a row of the entity's model was inserted. Made by ``created()``."""

    kind: Final = "created"

    def describe(self, definition: Definition) -> str:
        """What starts a run, in words."""
        return _("a new row of %(entity)s") % {"entity": definition.label}

    def __repr__(self) -> str:
        return "created()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Created)

    def __hash__(self) -> int:
        return hash(Created)


@known_keywords
def created() -> Created:
    """Start a run for each inserted row of the entity's model; rows loaded from fixtures start none by themselves."""
    return Created()


@dataclass(frozen=True)
class AfterRun:
    """A start of its own: a run of ``timeline`` has ended as ``ended`` says. Made by ``after_run(…)``."""

    timeline: type[Timeline]
    ended: Ended

    @property
    def kind(self) -> str:
        return "after_run"

    def describe(self, definition: Definition) -> str:  # noqa: ARG002 (as other starts do)
        """What starts a run, in words."""
        name = self.definition.name if self.definition else ""
        return _("after a run of %(timeline)s (%(ended)s)") % {"timeline": name, "ended": self.ended}

    @property
    def definition(self) -> Definition | None:
        """Of that timeline; None: it is none."""
        found: Definition | None = getattr(self.timeline, "definition", None)
        return found

    @property
    def ends(self) -> frozenset[str]:
        """Codes of the ends that count."""
        return _ENDS[self.ended]

    @property
    def only_completed(self) -> bool:
        """Whether its tasks have to have gone well, too."""
        return self.ended == "completed"

    def problems_of(self, definition: Definition) -> list[Problem]:
        """Say what is wrong with it as a start of a timeline, each with its remedy."""
        other = self.definition
        if other is None:
            word = getattr(self.timeline, "__name__", repr(self.timeline))
            return [(f"starts after_run({word}), which is no timeline.", "Give the class of a timeline, not abstract.")]
        word = f"after_run({other.cls.__name__})"
        if self.ended not in _ENDS:
            known = ", ".join(map(repr, _ENDS))
            return [(f"starts {word} with ended={self.ended!r}.", f"Use one of {known}.")]
        found = []
        if other.has_states and self.ended in ("completed", "finished"):
            problem = (
                f"starts {word} where it is {self.ended}, but runs of a machine end by its table, which is an exit."
            )
            found.append((problem, 'Give ended="exit".'))
        if other.name == definition.name:
            problem = f"starts {word}, which is itself: it would begin again and again."
            found.append((problem, "Start it by the clock, or on an event."))
        elif any(isinstance(start, AfterRun) for start in other.starts_on):
            problem = f"starts {word}, which starts after a run itself."
            found.append(
                (problem, "Make it a task of that one with after(…), or start it on an event that is emitted there.")
            )
        if other.label != definition.label:
            about = [label or "the system" for label in (definition.label, other.label)]
            problem = f"starts {word}, but is about {about[0]}, and that about {about[1]}."
            found.append((problem, "Let both be about the same model, or emit an event in the last task of the other."))
        return found


@known_keywords
def after_run(timeline: type[Timeline], /, *, ended: Ended = "completed") -> AfterRun:
    """
    Start a run when a run of another timeline has ended, in the same transaction: for the same entity, with the same key.

    Args:
        timeline: The other timeline, about the same model; it must not itself start by ``after_run``.
        ended: ``"completed"``: it finished, at least one task completed, and no discarded task is left that was not redriven.
            ``"finished"``: no task is left, however they ended. ``"exit"``, ``"left"``: it was ended by an event, or by
            hand. ``"any"``: any of these. A run whose entity was deleted starts none.
    """
    return AfterRun(timeline, ended)
