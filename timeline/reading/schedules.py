"""When a timeline starts by the clock, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime

from django.utils.translation import gettext as _

from timeline.definition import Recurring
from timeline.registry import registry
from timeline.timing.telling import in_words, on_the_wall


def next_slot(recurring: Recurring, *, now: datetime) -> datetime | None:
    """The next slot by the schedule alone, whatever happened to its row; None: there is no further slot."""
    return next(next_slots(recurring, now=now), None)


def next_slots(recurring: Recurring, *, now: datetime) -> Iterator[datetime]:
    """All slots that are ahead, by the schedule alone, in order."""
    if recurring.slots is not None:
        with suppress(OverflowError):
            yield from (slot.at for slot in recurring.slots.since(now, recurring.timezone))


def schedule_in_words(recurring: Recurring, *, now: datetime | None) -> str:
    """
    Say when a timeline starts: ``every day at 02:00 in Europe/Berlin, next 25 November 2026 02:00``.

    Args:
        recurring: The schedule.
        now: Story time; None: leave out the next time.
    """
    if recurring.slots is None:
        return recurring.word
    zone = recurring.timezone
    said = _("%(slots)s in %(zone)s") % {"slots": in_words(recurring.slots), "zone": zone}
    following = None if now is None else next_slot(recurring, now=now)
    return (
        said if following is None else _("%(said)s, next %(at)s") % {"said": said, "at": on_the_wall(following, zone)}
    )


def schedule_of(timeline: str, *, now: datetime) -> str:
    """Say when a timeline starts by the clock; empty: it does not, or is not known here."""
    known = next((known for known in registry if known.name == timeline), None)
    return "" if known is None or known.recurring is None else schedule_in_words(known.recurring, now=now)
