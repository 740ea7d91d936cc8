"""Enter a function, in a worker."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.db import DEFAULT_DB_ALIAS

from timeline.django_tasks.framework import TaskContext, normalize_json, task_backends, task_started
from timeline.django_tasks.results import results_of


def run(context: Any, made: Any) -> Any:
    """Call the function with the arguments of its row; give what it returns, as JSON holds it."""
    result = _begun(context)
    task_started.send_robust(sender=_sender(result), task_result=result)
    return normalize_json(made.func(*_given(made, result), **result.kwargs))


async def run_async(context: Any, made: Any) -> Any:
    """The same of a coroutine."""
    result = await sync_to_async(_begun)(context)
    await task_started.asend_robust(sender=_sender(result), task_result=result)
    return normalize_json(await made.func(*_given(made, result), **result.kwargs))


def _begun(context: Any) -> Any:
    row = context.task
    return results_of([row], using=row._state.db or DEFAULT_DB_ALIAS)[0]


def _sender(result: Any) -> type:
    return type(task_backends[result.backend])


def _given(made: Any, result: Any) -> list[Any]:
    return [TaskContext(task_result=result), *result.args] if made.takes_context else result.args
