"""What is said of a task that waits for its rate."""

from __future__ import annotations

from typing import Final

from timeline.lifecycle import ReasonCode
from timeline.reasons import Sentence
from timeline.reasons import gettext_noop as _

USED_UP: Final = Sentence("rate_used_up", ReasonCode.WAITING, _("the rate of “%(key)s”, %(rate)s, is used up"))
BRAKED: Final = Sentence("rate_braked", ReasonCode.WAITING, _("“%(key)s” is told to wait until %(at)s"))
BUSY: Final = Sentence("rate_busy", ReasonCode.WAITING, _("somebody has locked the rate of “%(key)s”"))

SENTENCES: Final = (USED_UP, BRAKED, BUSY)
