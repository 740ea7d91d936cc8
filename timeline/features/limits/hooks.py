"""Where limits take part: tasks that compete for places come from here, and their rows say for which."""

from __future__ import annotations

from operator import attrgetter

from timeline.features.limits.claims import Places
from timeline.features.limits.keys import columns_of, compete, fill, give_up_places, hand_on, inherited, without_places
from timeline.features.limits.reading import closed, in_inventory, told_place
from timeline.hooks import Hooks, SomeColumns

HOOKS = Hooks(
    sources=(Places(),),
    releases=((attrgetter("task.slot"), without_places),),
    columns=((attrgetter("limit"), columns_of),),
    inherits=((attrgetter("held_until"), inherited),),
    some_columns=(SomeColumns(("held_until", "limit_key"), fill),),
    new_rows=((attrgetter("held_until"), compete),),
    successions=(hand_on,),
    redrives=(give_up_places,),
    explains=(told_place,),
    asks=(closed,),
    inventories=(in_inventory,),
)
