"""What a team writes: a ``Timeline`` class with tasks, steps, starts and exits. Every mistake in it is an error at start."""

from timeline.definition.asks import OWNER, Ask
from timeline.definition.context import Context, StepContext
from timeline.definition.definitions import Definition
from timeline.definition.handlers import Task, task
from timeline.definition.limits import Limit
from timeline.definition.machines import Machine
from timeline.definition.moving import Then
from timeline.definition.recurring import Recurring, cron, daily, hourly, monthly, weekly
from timeline.definition.retrying import Retry
from timeline.definition.starts import AfterRun, Created, after_run, created
from timeline.definition.steps import Step, step
from timeline.definition.tables import BACK, IGNORE, OPEN, STAY, WORKING, Answer, Table
from timeline.definition.timelines import Timeline
from timeline.definition.timers import never

__all__ = [
    "BACK",
    "IGNORE",
    "OPEN",
    "OWNER",
    "STAY",
    "WORKING",
    "AfterRun",
    "Answer",
    "Ask",
    "Context",
    "Created",
    "Definition",
    "Limit",
    "Machine",
    "Recurring",
    "Retry",
    "Step",
    "StepContext",
    "Table",
    "Task",
    "Then",
    "Timeline",
    "after_run",
    "created",
    "cron",
    "daily",
    "hourly",
    "monthly",
    "never",
    "step",
    "task",
    "weekly",
]
