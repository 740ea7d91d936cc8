"""
What can go wrong, as leaves of ``TimelineError``: what happened is in the attributes, the remedy in the text.

``str()`` tells it in the language of whoever reads it. Only what developers and logs meet is always in English.
"""

from timeline.exceptions.base import (
    BrokerUnavailable,
    Cancel,
    DefinitionError,
    Discard,
    HandlerSignal,
    LabelsCollide,
    LeaseLost,
    NoAutocommit,
    NotRunHere,
    RateLimited,  # of rates
    Refusal,
    Rest,
    RetryAfter,
    TimedOut,
    TimelineDeprecationWarning,
    TimelineError,
    UnknownEventWarning,
    WorkerLost,
    WrongIsolation,
    WrongSite,
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
from timeline.exceptions.refusals import (
    AlreadyDecided,
    AlreadyOpen,
    AlreadyReleased,
    AlreadyTaken,
    ChangedSince,
    DecidedTooLate,
    MoveNotAllowed,
    MovesTooOften,
    NoOpenRun,
    RunEnded,
    StateMoved,
    TransitionNotAllowed,
    UnknownMachineEvent,
)

__all__ = [
    "AlreadyDecided",
    "AlreadyOpen",
    "AlreadyReleased",
    "AlreadyTaken",
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
    "RateLimited",  # of rates
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
    "UnknownEventWarning",
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
