"""What is said of what waits for an event, and of the event that ends that."""

from __future__ import annotations

from typing import Final

from timeline.lifecycle import ReasonCode
from timeline.reasons import Sentence
from timeline.reasons import gettext_noop as _

WAITS_FOR: Final = Sentence("waits_for", ReasonCode.WAITING, _("waits for %(events)s until %(at)s"))
CAME: Final = Sentence("came", ReasonCode.EVENT, _("%(event)s came"))
WAITS_FOR_OTHER: Final = Sentence(
    "waits_for_other", ReasonCode.WAITING, _("waits for %(events)s of %(entity)s until %(at)s")
)
WAITS_FOR_NOBODY: Final = Sentence(
    "waits_for_nobody",
    ReasonCode.WAITING,
    _("waits until %(at)s: there is no %(whose)s yet that %(events)s could come to"),
)
CAME_OF: Final = Sentence("came_of", ReasonCode.EVENT, _("%(event)s of %(entity)s came"))
AWAITED_DELETED: Final = Sentence(
    "awaited_deleted", ReasonCode.EVENT, _("%(entity)s was deleted, for whose event it waited")
)

SENTENCES: Final = (
    WAITS_FOR,
    CAME,
    WAITS_FOR_OTHER,
    WAITS_FOR_NOBODY,
    CAME_OF,
    AWAITED_DELETED,
)
