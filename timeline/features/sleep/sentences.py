"""What is said of a task that sleeps."""

from __future__ import annotations

from typing import Final

from timeline.lifecycle import ReasonCode
from timeline.reasons import Sentence
from timeline.reasons import gettext_noop as _

SLEEPS: Final = Sentence("sleeps", ReasonCode.WAITING, _("sleeps until %(at)s"))
