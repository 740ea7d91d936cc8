"""Where rates take part: attempts are counted before their handlers are entered, or put off; handlers brake a whole key."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from timeline.clocks import story_now
from timeline.features.rates.admission import held_to_rate, slowed
from timeline.features.rates.reading import in_inventory
from timeline.features.rates.sentences import SENTENCES
from timeline.features.rates.store import forget
from timeline.hooks import Hooks

_FORGOTTEN: Final = 1_000
_AT_ONCE: Final = 20

_RATE: Final = attrgetter("declared.options.rate")


def _forget(using: str) -> None:
    for _ in range(_AT_ONCE):
        if forget(now=story_now(using), most=_FORGOTTEN, using=using) < _FORGOTTEN:
            break


HOOKS = Hooks(
    admissions=((_RATE, held_to_rate),),
    errors=((_RATE, slowed),),
    maintains=(_forget,),
    inventories=(in_inventory,),
    sentences=SENTENCES,
)
