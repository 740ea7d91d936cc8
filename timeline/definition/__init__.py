"""What a team writes: a ``Timeline`` class with tasks, steps, starts and exits. Every mistake in it is an error at start."""

from timeline.definition.context import Context, StepContext
from timeline.definition.definitions import Definition
from timeline.definition.handlers import Task, task
from timeline.definition.recurring import Recurring, cron, daily, hourly, monthly, weekly
from timeline.definition.retrying import Retry
from timeline.definition.starts import AfterRun, Created, after_run, created
from timeline.definition.steps import Step, step
from timeline.definition.timelines import Timeline

__all__ = [
    "AfterRun",
    "Context",
    "Created",
    "Definition",
    "Recurring",
    "Retry",
    "Step",
    "StepContext",
    "Task",
    "Timeline",
    "after_run",
    "created",
    "cron",
    "daily",
    "hourly",
    "monthly",
    "step",
    "task",
    "weekly",
]
