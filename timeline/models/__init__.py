"""The rows, what guards them, and the questions asked of them."""

from timeline.models.answer import Answer
from timeline.models.entities import EntityRef, family_of, model_of, ref_as, ref_of, ref_with
from timeline.models.event import Event
from timeline.models.identity import Identity
from timeline.models.log import LogEntry
from timeline.models.pace import Pace
from timeline.models.run import TimelineRun
from timeline.models.sign import Sign
from timeline.models.spelling import exact_ref
from timeline.models.step import StepKind, StepRecord
from timeline.models.sweep import Sweep
from timeline.models.task import ScheduledTask

__all__ = [
    "Answer",
    "EntityRef",
    "Event",
    "Identity",
    "LogEntry",
    "Pace",
    "ScheduledTask",
    "Sign",
    "StepKind",
    "StepRecord",
    "Sweep",
    "TimelineRun",
    "exact_ref",
    "family_of",
    "model_of",
    "ref_as",
    "ref_of",
    "ref_with",
]
