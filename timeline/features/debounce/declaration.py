"""``Debounce``: which events make a burst, how long it has to be quiet, and how long a burst may last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypedDict

from django.apps import apps

from timeline.timing.keywords import known_arguments

if TYPE_CHECKING:
    from timeline.definition.definitions import Definition

BURST: Final = "burst"  # In the payload of the row: what it stands for.
NUMBERED: Final = "(burst) "  # Before the number of the burst, in the occurrence of the row.
LONGEST: Final = timedelta(days=366)

# Names of events that begin bursts, or may end them, in any class that was declared: asked in C of each event.
HEARD: Final[set[str]] = set()


@known_arguments
@dataclass(frozen=True)
class Debounce:
    """
    One task for a burst of events.

    Args:
        event: Name of the event, or several in a tuple.
        quiet: How long no such event may come before the task is due.
        at_latest: So long after the first event of the burst it is due in any case. None: it waits for quiet, however long.
        of: Label of the model whose events count, ``"shop.Page"``, if they are not those of the entity itself.
        by: Name of a foreign key of that model to the entity: all that it leads to the same entity is one burst.
    """

    event: str | tuple[str, ...]
    quiet: timedelta
    at_latest: timedelta | None = None
    of: str = ""
    by: str = ""

    @property
    def events(self) -> tuple[str, ...]:
        """Names of the events."""
        return (self.event,) if isinstance(self.event, str) else self.event

    def label(self, definition: Definition) -> str:
        """Label of the model whose events count."""
        model = apps.get_model(self.of)._meta.concrete_model if self.of else None
        return definition.label if model is None else model._meta.label_lower

    def due_at(self, now: datetime, latest: datetime | None) -> datetime:
        """When the task is due if an event comes now."""
        quiet = now + self.quiet
        return quiet if latest is None else min(quiet, latest)

    def latest_at(self, first: datetime) -> datetime | None:
        """When the task of a burst is due in any case; None: never."""
        return None if self.at_latest is None else first + self.at_latest


class DebounceOptions(TypedDict, total=False):
    """
    Args:
        debounce: A ``Debounce``: events in a burst give one row, which each of them moves until it has been quiet. The task
            has no schedule then. None: it has none of this.
    """

    debounce: Debounce | None


def debounced(definition: Definition) -> Iterator[tuple[str, Debounce]]:
    """The tasks of a class that are debounced, by name."""
    for name, declared in definition.tasks.items():
        if isinstance(declared.options.debounce, Debounce):
            yield name, declared.options.debounce


def moment_in(text: Any) -> datetime | None:
    """A moment, as the payload of a row has it; None: nobody can read it."""
    try:
        at = datetime.fromisoformat(text)
        return None if at.tzinfo is None else at.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None
