"""The tables, their constraints, and the questions asked of them."""

from timeline.models.bulk_action import BulkAction, BulkState
from timeline.models.decisions import Admission, Hold, Opening, RateKey, Scope, Then
from timeline.models.entities import EntityRef, family_of, model_of, ref_as, ref_of, ref_with
from timeline.models.event import Event, Wake
from timeline.models.kin import exact_ref
from timeline.models.machine_rows import Edge, RunEntry, Taking
from timeline.models.run import TimelineRun
from timeline.models.state_field import StateField, known_states
from timeline.models.task import ScheduledTask
from timeline.models.task_records import LogEntry, StepKind, StepRecord
from timeline.models.upkeep import Answer, Figure, Identity, Pace, RollUp, Sign, Sweep, Total

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
    "RateKey",
    "RollUp",
    "RunEntry",
    "ScheduledTask",
    "Scope",
    "Sign",
    "StateField",
    "StepKind",
    "StepRecord",
    "Sweep",
    "Taking",
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
