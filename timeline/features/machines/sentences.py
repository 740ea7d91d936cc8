"""What a machine says of its tasks."""

from __future__ import annotations

from typing import Final

from timeline.lifecycle import ReasonCode
from timeline.reasons import Sentence
from timeline.reasons import gettext_noop as _

STATE_LEFT: Final = Sentence("state_left", ReasonCode.STATE, _("its run is not in %(states)s any more"))
DEADLINE_STANDS: Final = Sentence(
    "deadline_stands",
    ReasonCode.MOVED,
    _("its state was entered again by somebody whom the machine asks: it is due as before"),
)
ANSWERED: Final = Sentence("answered", ReasonCode.THEN, _("%(error)s was raised, which means %(event)s"))

SENTENCES: Final = (
    STATE_LEFT,
    DEADLINE_STANDS,
    ANSWERED,
)
