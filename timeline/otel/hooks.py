"""Where tracing takes part: it looks on, changes nothing, and asks the database only where there is a tracer."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from timeline.hooks import Hooks
from timeline.otel import spans
from timeline.otel.contexts import forget, forget_in_pauses, keep
from timeline.otel.tracers import tracer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.models import ScheduledTask


def _is_first(task: ScheduledTask) -> bool:
    """Whether it is the first revision of a task that was scheduled by itself: later ones go on with its trace."""
    return task.run_id is None and task.previous_id is None and tracer() is not None


def _keep(tasks: Sequence[ScheduledTask], *, using: str) -> None:
    keep([task.id for task in tasks if _is_first(task)], using=using)


HOOKS = Hooks(
    new_rows=((_is_first, _keep),),
    prechecks=((attrgetter("task"), spans.look_on),),
    emits=(spans.of_emit,),
    recorded=(spans.recorded,),
    calls=(spans.Call,),
    undone=((attrgetter("trace"), spans.undone),),
    left=((attrgetter("trace"), spans.left),),
    steps=(spans.of_step,),
    polled=(spans.polled,),
    posted=(spans.posted,),
    between=(forget_in_pauses,),
    maintains=(forget,),
)
