"""
What can go wrong, as leaves of ``TimelineError``: what happened is in the attributes, the remedy in the text.

``str()`` tells it in the language of whoever reads it. Only what developers and logs meet is always in English.
"""

from timeline.exceptions.attempts import (
    Cancel,
    Discard,
    HandlerSignal,
    LeaseLost,
    Rest,
    RetryAfter,
    TimedOut,
    WorkerLost,
)
from timeline.exceptions.base import (
    DefinitionError,
    Refusal,
    TimelineDeprecationWarning,
    TimelineError,
)
from timeline.exceptions.inputs import (
    DateOutOfRange,
    InvalidInput,
    KeyConflict,
    KeyReused,
    NaiveDatetime,
    NotPlainJSON,
    PayloadTooLarge,
    UnknownEvent,
    UnknownTask,
    UnknownTimeline,
    UnreadableEntity,
    WrongEntity,
)
from timeline.exceptions.machines import (
    MoveNotAllowed,
    MovesTooOften,
    StateMoved,
    UnknownMachineEvent,
)
from timeline.exceptions.refusals import (
    AlreadyDecided,
    AlreadyOpen,
    AlreadyReleased,
    ChangedSince,
    DecidedTooLate,
    NoOpenRun,
    RunEnded,
    TransitionNotAllowed,
)
from timeline.exceptions.surroundings import (
    BrokerUnavailable,
    LabelsCollide,
    NoAutocommit,
    NotRunHere,
    WrongIsolation,
    WrongSite,
)

__all__ = [
    "AlreadyDecided",
    "AlreadyOpen",
    "AlreadyReleased",
    "BrokerUnavailable",
    "Cancel",
    "ChangedSince",
    "DateOutOfRange",
    "DecidedTooLate",
    "DefinitionError",
    "Discard",
    "HandlerSignal",
    "InvalidInput",
    "KeyConflict",
    "KeyReused",
    "LabelsCollide",
    "LeaseLost",
    "MoveNotAllowed",
    "MovesTooOften",
    "NaiveDatetime",
    "NoAutocommit",
    "NoOpenRun",
    "NotPlainJSON",
    "NotRunHere",
    "PayloadTooLarge",
    "Refusal",
    "Rest",
    "RetryAfter",
    "RunEnded",
    "StateMoved",
    "TimedOut",
    "TimelineDeprecationWarning",
    "TimelineError",
    "TransitionNotAllowed",
    "UnknownEvent",
    "UnknownMachineEvent",
    "UnknownTask",
    "UnknownTimeline",
    "UnreadableEntity",
    "WorkerLost",
    "WrongEntity",
    "WrongIsolation",
    "WrongSite",
]

# What they are called in logs, in groups of dead letters, and where they are pickled: by where hosts import them from.
for _name in __all__:
    globals()[_name].__module__ = __name__
