"""Topics: what an endpoint may want to be told, and which of them a fact is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from timeline.lifecycle import FINAL
from timeline.registry import registry
from timeline.signals import Ending, Entered

MAX_TOPICS: Final = 100
ENDINGS: Final = tuple(sorted(str(state) for state in FINAL))
OWN: Final = frozenset({"alerts"})  # Timelines of the package itself, of which nobody outside is told.


def known_topics() -> Iterator[str]:
    """
    List what there is to tell: ``booking``, ``booking.BOOKED``, ``booking.auth.otp_required``, ``task.discarded``,
    ``task.discarded.trial``, ``task.discarded.trial.remind``.
    """
    for definition in registry:
        if definition.tells:
            yield definition.name
            yield from (f"{definition.name}.{told}" for told in sorted(definition.tells))
    for ending in ENDINGS:
        yield f"task.{ending}"
        for definition in registry:
            if definition.name not in OWN:
                yield f"task.{ending}.{definition.name}"
                yield from (f"task.{ending}.{definition.task_key(name)}" for name in definition.tasks)


def check_topics(value: Any) -> None:
    """
    See that what an endpoint wants is there.

    Raises:
        ValidationError: that names what is not, and what may be meant.
    """
    if not isinstance(value, list) or not 0 < len(value) <= MAX_TOPICS:
        raise ValidationError(_("Give a list of 1 to %(most)d topics.") % {"most": MAX_TOPICS})
    known = list(known_topics())
    for topic in value:
        if topic not in known:
            near = get_close_matches(topic, known, n=3) if isinstance(topic, str) else []
            said = {"topic": f"{topic!a:.80}", "near": ", ".join(near or known[:3])}
            raise ValidationError(_("%(topic)s is nothing that is told. There are: %(near)s.") % said)


def topics_of_entry(entry: Entered) -> list[str]:
    """The topics of a move, what it is called first; none: its machine does not tell it."""
    definition = registry.about(entry.timeline, entry.entity_label)
    told = definition.tells if definition is not None else frozenset()
    names = [name for name in (entry.to_state, entry.event) if name in told]
    return [*(f"{entry.timeline}.{name}" for name in names), entry.timeline] if names else []


def topics_of_ending(ending: Ending) -> list[str]:
    """The topics of a task that ends, what it is called first; none: it is one of the package itself."""
    timeline = ending.task_key.partition(".")[0]
    if timeline in OWN:
        return []
    return [f"task.{ending.state}", f"task.{ending.state}.{timeline}", f"task.{ending.state}.{ending.task_key}"]


def some_told(entries: Iterable[Entered]) -> bool:
    """Whether a machine tells one of these moves."""
    return any(topics_of_entry(entry) for entry in entries)
