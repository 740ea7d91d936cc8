"""What is said of tasks that were fanned out."""

from __future__ import annotations

from typing import Final

from timeline.lifecycle import ReasonCode
from timeline.reasons import Sentence
from timeline.reasons import gettext_noop as _

FANNED_OUT_ANEW: Final = Sentence("fanned_out_anew", ReasonCode.SUPERSEDED, _("%(task)s has fanned out anew"))

SENTENCES: Final = (FANNED_OUT_ANEW,)
