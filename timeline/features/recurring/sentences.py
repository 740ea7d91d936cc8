"""What the clock says of the runs that it begins."""

from __future__ import annotations

from typing import Final

from timeline.lifecycle import ReasonCode
from timeline.reasons import Sentence
from timeline.reasons import gettext_noop as _

SLOTS_PASSED: Final = Sentence(
    "slots_passed",
    ReasonCode.EXPIRED,
    _("passed over, as nobody was there to see its time: all from %(first)s to %(last)s"),
)
NO_CLOCK: Final = Sentence("no_clock", ReasonCode.SUPERSEDED, _("no clock starts this timeline any more"))
OVERLAPS: Final = Sentence("overlaps", ReasonCode.OVERLAP, _("the run %(run)s of this timeline is still open"))
BEHIND: Final = Sentence("behind", ReasonCode.WAITING, _("waits for the run %(run)s of this timeline to end"))
ENDED_BEFORE: Final = Sentence("ended_before", ReasonCode.EVENT, _("the run %(run)s of this timeline has ended"))

SENTENCES: Final = (
    SLOTS_PASSED,
    NO_CLOCK,
    OVERLAPS,
    BEHIND,
    ENDED_BEFORE,
)
