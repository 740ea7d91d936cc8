"""Why a task with steps rests, until the code fits to what is recorded or somebody decides."""

from __future__ import annotations

from typing import Final

from timeline.lifecycle import ReasonCode
from timeline.reasons import Sentence
from timeline.reasons import gettext_noop as _

STEP_CHANGED: Final = Sentence(
    "step_changed", ReasonCode.DEFINITION, _("the code has changed: step %(step)s was done with other arguments")
)
STEP_LEFT_OUT: Final = Sentence(
    "step_left_out",
    ReasonCode.DEFINITION,
    _("the code has changed: it comes to step %(step)s without %(done)s, which is done"),
)
STEP_GONE: Final = Sentence(
    "step_gone", ReasonCode.DEFINITION, _("the code has changed: there is no step %(done)s any more, which is done")
)
STEP_ERASED: Final = Sentence(
    "step_erased", ReasonCode.DEFINITION, _("what step %(step)s returned was erased; somebody has to decide")
)
STEPS_IN_SHADOW: Final = Sentence(
    "steps_in_shadow", ReasonCode.DEFINITION, _("its timeline is in shadow, and some of its steps are done")
)
STEPS_GONE: Final = Sentence(
    "steps_gone", ReasonCode.DEFINITION, _("the code has changed: it takes no such steps any more, and some are done")
)

SENTENCES: Final = (
    STEP_CHANGED,
    STEP_LEFT_OUT,
    STEP_GONE,
    STEP_ERASED,
    STEPS_IN_SHADOW,
    STEPS_GONE,
)
