"""Call a handler: ask its guards, set language and time zone of the entity, and turn the return value into an outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.utils import timezone, translation

from timeline import reasons
from timeline.definition import Then, Timeline
from timeline.engine.attempts import Attempt, guard_reason
from timeline.engine.failures import at_rest
from timeline.exceptions import Rest
from timeline.features.machines.outcomes import checked
from timeline.hooks import asked_for, hooks
from timeline.lifecycle import Reason, ReasonCode, Trigger
from timeline.models.facts import language_of, zone_of
from timeline.operations.current import now_running
from timeline.payloads import json_text
from timeline.store.transition import Write

_DONE = Reason(ReasonCode.DONE)
_IN_SHADOW = reasons.IN_SHADOW()


def call(attempt: Attempt) -> Write:
    """
    Ask the guards, enter the handler unless the timeline is in shadow, and take its result. What the handler sets on this
    thread (language, time zone, context variables) ends with it. Its errors are raised.
    """
    return copy_context().run(_call, attempt)


def _call(attempt: Attempt) -> Write:
    enter(attempt)
    refused = refusal(attempt)
    if refused is not None:
        return refused
    try:
        return returned(attempt, handler_of(attempt)())
    except Rest as rest:
        return at_rest(attempt, rest)


async def call_async(attempt: Attempt) -> Write:
    """
    Enter an async handler, and take its result. Steps that still run when it ends belong to it, and are waited for. An
    exception that is alone in a group is raised without the group.
    """
    try:
        try:
            return returned(attempt, await _whole(attempt, handler_of(attempt)()))
        except BaseExceptionGroup as several:
            if attempt.steps is not None:
                attempt.steps.see_end()  # The error that ended the attempt may be anywhere in this group.
            if (alone := _alone(several)) is not several:
                raise alone from several
            raise
    except Rest as rest:
        return at_rest(attempt, rest)


async def _whole(attempt: Attempt, handler: Awaitable[object]) -> object:
    raised: BaseException | None = None
    try:
        return await handler
    except BaseException as error:
        raised = error
        raise
    finally:
        if attempt.steps is not None:
            broken_off = isinstance(raised, asyncio.CancelledError)
            await attempt.steps.wait_for_those_beside(failed=raised is not None, cancel=broken_off)


def _alone(error: BaseException) -> BaseException:
    """The only exception in a group; the group itself if it has several."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


@contextmanager
def in_place_of_the_site() -> Iterator[None]:
    """Set zone and language to the site's; changes of them end with the block."""
    with timezone.override(timezone.get_default_timezone()), translation.override(translation.get_language()):
        yield


def enter(attempt: Attempt) -> None:
    """Mark the task as being run, and set zone and language to the entity's where its timeline says so, in this context."""
    now_running(attempt.task.id)
    if attempt.definition.cls.time_zone:
        timezone.activate(zone_of(attempt.definition, attempt.entity))
    if attempt.definition.cls.language and (language := language_of(attempt.definition, attempt.entity)):
        translation.activate(language)


def refusal(attempt: Attempt) -> Write | None:
    """How an attempt ends whose handler must not be entered: a guard refuses, or the timeline is in shadow."""
    for ask in asked_for(hooks().before_entry, [attempt]):
        if (write := ask(attempt, _alias_of(attempt))) is not None:
            return write
    if attempt.has_records:  # A half-done task goes on, whatever a guard says by now.
        return None
    for option, guard in attempt.declared.function_guards:
        if bool(guard(attempt.entity)) is (option != "only_if"):
            reason = guard_reason(option, guard)
            return Write(task=attempt.task, triggers=(Trigger.CANCEL,), reason=reason, entered=False)
    if attempt.definition.shadow:
        return Write(task=attempt.task, triggers=(Trigger.COMPLETE,), reason=_IN_SHADOW)
    return None


def _alias_of(attempt: Attempt) -> str:
    return attempt.task._state.db or DEFAULT_DB_ALIAS


def handler_of(attempt: Attempt) -> Callable[[], Any]:
    """The handler, with its context and its entity bound; it is called without arguments."""
    using = _alias_of(attempt)
    context = attempt.definition.cls(**attempt.told(), awaited=attempt.awaited)
    equip(context, attempt, using)
    method = attempt.declared.bound_to(context)
    return partial(method, attempt.entity) if attempt.definition.label else method


def equip(context: Timeline, attempt: Attempt, using: str) -> None:
    """Give a context what features need there: some now, some when it is used."""
    for give in asked_for(hooks().contexts, [attempt]):
        give(context, attempt, using)
    context._make_part = lambda name: dict(hooks().parts)[name](context, attempt, using)


def returned(attempt: Attempt, result: object) -> Write:
    """
    Turn the return value of a handler into its outcome.

    Raises:
        NotPlainJSON, PayloadTooLarge: naming ``result``.
        InvalidInput: if it is an event that its machine does not have.
        Rest: if the code has changed, and the handler did not reach some steps that are done.
    """
    if attempt.steps is not None:
        attempt.steps.see_end()
    text, then = None, None
    if isinstance(result, Then):
        then, result = result, checked(result, attempt.definition)
    if result is not None:
        text = json_text("result", result)
    fans_out = attempt.fanned_out.end() if attempt.fanned_out is not None else {}
    return Write(
        task=attempt.task, triggers=(Trigger.COMPLETE,), reason=_DONE, result=text, fans_out=fans_out, then=then
    )
