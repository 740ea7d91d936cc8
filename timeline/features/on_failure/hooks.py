"""Where handlers of failures take part: their rows are written with the discard, and ``explain`` tells of them."""

from timeline.features.on_failure.store import told_failure, write_handlers
from timeline.hooks import Hooks

HOOKS = Hooks(discards=(write_handlers,), explains=(told_failure,))
