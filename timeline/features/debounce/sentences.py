"""What is said of a task that an event of its burst has moved."""

from typing import Final

from timeline.lifecycle import ReasonCode
from timeline.reasons import Sentence
from timeline.reasons import gettext_noop as _

PUT_OFF: Final = Sentence("put_off", ReasonCode.WAITING, _("%(event)s came: waits for quiet until %(at)s"))
PUT_OFF_TO: Final = Sentence(
    "put_off_to", ReasonCode.WAITING, _("%(event)s came: waits for quiet until %(at)s, at the latest until %(last)s")
)

SENTENCES: Final = (PUT_OFF, PUT_OFF_TO)
