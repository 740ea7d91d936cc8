"""Where debouncing takes part: it hears each event that a class names for it, and says what a row stands for."""

from timeline.features.debounce.declaration import HEARD
from timeline.features.debounce.reading import in_inventory, told_burst
from timeline.features.debounce.sentences import SENTENCES
from timeline.features.debounce.verbs import take_in
from timeline.hooks import Hooks

HOOKS = Hooks(
    heard=((HEARD.__contains__, take_in),), origins=(told_burst,), sentences=SENTENCES, inventories=(in_inventory,)
)
