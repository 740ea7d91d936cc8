"""
What is said of what is, or was, on hold. Whoever made the hold may have written what not everybody is to read: that is not
repeated here.
"""

from __future__ import annotations

from typing import Final

from timeline.lifecycle import ReasonCode
from timeline.reasons import Sentence
from timeline.reasons import gettext_noop as _

ON_HOLD: Final = Sentence("on_hold", ReasonCode.HOLD, _("%(what)s has been on hold since %(at)s"))
SHIFTED: Final = Sentence("shifted", ReasonCode.MOVED, _("%(what)s was on hold from %(first)s to %(last)s"))
DUE_ON_HOLD: Final = Sentence(
    "due_on_hold", ReasonCode.EXPIRED, _("it was due while %(what)s was on hold, from %(first)s to %(last)s")
)

SENTENCES: Final = (
    ON_HOLD,
    SHIFTED,
    DUE_ON_HOLD,
)
