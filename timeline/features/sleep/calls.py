"""Sleep in a handler: go on if the moment has come, or end the attempt, so that the task rests until it comes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from timeline.engine.failures import zone_for
from timeline.exceptions import Rest
from timeline.features.sleep.sentences import SLEEPS
from timeline.features.waits.declaration import ASLEEP
from timeline.features.waits.rests import MayRest
from timeline.models import StepKind

if TYPE_CHECKING:
    from timeline.features.sleep.declaration import Sleep
    from timeline.features.steps.calls import Steps


@dataclass(frozen=True, slots=True)
class Sleeps:
    """A task rests, and waits for nothing but its time."""

    columns: Mapping[str, str | bool] = field(default_factory=dict)


class Sleeper(MayRest):
    """The sleeps of one attempt."""

    word = "sleep"
    apart = "name=…"
    _number = 0

    def sleep(self, asked: Sleep) -> Any:
        """
        Come back if the sleep is over, or let the task rest. Of an ``async def``, a coroutine. ``InvalidInput`` if it is called
        at a wrong place.
        """
        if not asked.name:
            self._number += 1
        name = f"{ASLEEP}{asked.name or self._number}"
        return self._asked(name, lambda steps: self._slept(steps, asked, name))

    def _slept(self, steps: Steps, asked: Sleep, name: str) -> None:
        record = steps.recorded(name, asked.given)
        if record is not None and record.kind == StepKind.OVER:
            return
        now, new = steps.recorder.now(), steps.recorder.new(name, asked.given)
        place = record.place if record is not None else None
        since, until = (
            (now, self._until(asked, now)) if place is None else map(_moment, (place["since"], place["until"]))
        )
        new = new._replace(place=json.dumps({"since": since.isoformat(), "until": until.isoformat()}))
        if now < until:
            if place is None:  # Recorded before the task rests: what is lost in between is not slept anew.
                steps.recorder.keep_place(new._replace(kind=StepKind.WAIT))
            raise Rest(SLEEPS(at=until), due_at=until, rests=Sleeps())
        steps.recorder.keep_place(new._replace(kind=StepKind.OVER, seconds=(now - since).total_seconds()))

    def _until(self, asked: Sleep, now: datetime) -> datetime:
        if asked.until is not None:
            return asked.until
        return asked.offset.apply(now, zone_for(self._attempt))


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
