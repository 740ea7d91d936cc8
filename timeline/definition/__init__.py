"""What a team writes: a ``Timeline`` class with tasks, steps, starts and exits. Every mistake in it is an error at start."""

from timeline.definition.context import Context, StepContext
from timeline.definition.definitions import Definition
from timeline.definition.handlers import Task, task
from timeline.definition.retry import Retry
from timeline.definition.starts import AfterRun, Created, after_run, created
from timeline.definition.timelines import Timeline
from timeline.features.debounce.declaration import Debounce  # of debounce
from timeline.features.limits.declaration import Limit  # of limits
from timeline.features.machines.choices import Passage, to
from timeline.features.machines.declaration import Machine
from timeline.features.machines.parse import OWNER, AskedEvent, ask
from timeline.features.machines.table import BACK, IGNORE, OPEN, STAY, WORKING, Table, TableAnswer, Then
from timeline.features.machines.timers import never
from timeline.features.rates.declaration import Rate  # of rates
from timeline.features.recurring.declaration import Recurring, cron, daily, hourly, monthly, weekly
from timeline.features.steps.declaration import Step, step

__all__ = [
    "BACK",
    "IGNORE",
    "OPEN",
    "OWNER",
    "STAY",
    "WORKING",
    "AfterRun",
    "AskedEvent",
    "Context",
    "Created",
    "Debounce",  # of debounce
    "Definition",
    "Limit",  # of limits
    "Machine",
    "Passage",
    "Rate",  # of rates
    "Recurring",
    "Retry",
    "Step",
    "StepContext",
    "Table",
    "TableAnswer",
    "Task",
    "Then",
    "Timeline",
    "after_run",
    "ask",
    "created",
    "cron",
    "daily",
    "hourly",
    "monthly",
    "never",
    "step",
    "task",
    "to",
    "weekly",
]
