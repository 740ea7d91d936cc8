"""The tables, their constraints, and the questions asked of them."""

from timeline.models.admission import Admission
from timeline.models.answer import Answer
from timeline.models.bulk_action import BulkAction, BulkState
from timeline.models.edge import Edge
from timeline.models.entities import EntityRef, family_of, model_of, ref_as, ref_of, ref_with
from timeline.models.event import Event
from timeline.models.figure import Figure, RollUp, Total
from timeline.models.hold import Hold, Scope, Then
from timeline.models.identity import Identity
from timeline.models.log import LogEntry
from timeline.models.opening import Opening
from timeline.models.pace import Pace
from timeline.models.run import TimelineRun
from timeline.models.run_entry import RunEntry
from timeline.models.sign import Sign
from timeline.models.spelling import exact_ref
from timeline.models.state_field import StateField, known_states
from timeline.models.step import StepKind, StepRecord
from timeline.models.sweep import Sweep
from timeline.models.task import ScheduledTask
from timeline.models.wake import Wake

__all__ = [
    "Admission",
    "Answer",
    "BulkAction",
    "BulkState",
    "Edge",
    "EntityRef",
    "Event",
    "Figure",
    "Hold",
    "Identity",
    "LogEntry",
    "Opening",
    "Pace",
    "RollUp",
    "RunEntry",
    "ScheduledTask",
    "Scope",
    "Sign",
    "StateField",
    "StepKind",
    "StepRecord",
    "Sweep",
    "Then",
    "TimelineRun",
    "Total",
    "Wake",
    "exact_ref",
    "family_of",
    "known_states",
    "model_of",
    "ref_as",
    "ref_of",
    "ref_with",
]
