"""Finds what is wrong with the steps of a declared timeline."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from timeline.definition.names import MAX_NAME, is_name
from timeline.definition.retry import Retry
from timeline.hooks import Rules

if TYPE_CHECKING:
    from timeline.definition.check_timelines import Problem
    from timeline.definition.definitions import Definition
    from timeline.features.steps.declaration import Step, StepOptions


def step_problems(definition: Definition, name: str, declared: Step[Any, ..., Any]) -> Iterator[Problem]:
    """What is wrong with one step, each with its remedy."""
    if not is_name(name):
        yield "is no name for a step.", f"Use lower-case letters, digits and _, {MAX_NAME} at most."
    if name != declared.name:
        yield f"is the step {declared.name!r} under another name.", "Keep the name of the method."
    if not inspect.isfunction(declared.method):
        yield "is not a plain method.", "Put @step directly above a def, without other descriptors."
        return
    yield from _option_problems(declared.options)
    if declared.is_async and declared.options.atomic:
        yield (
            "is async and atomic.",
            "Give atomic=False: a transaction belongs to one thread, and these run side by side.",
        )
    yield from _was_problems(definition, declared.options.was)
    takers = [task for task in definition.tasks.values() if not task.options.atomic and task.options.bulk is None]
    if not takers:
        yield (
            "is a step, but each task of the class is atomic or takes many entities.",
            "Give atomic=False to the task that takes it.",
        )
    elif not any(task.is_async is declared.is_async for task in takers):
        kind, other = ("async def", "def") if declared.is_async else ("def", "async def")
        yield (
            f"is declared with {kind}, and each task that may take steps with {other}.",
            f"Declare both with {kind}.",
        )


def _option_problems(options: StepOptions) -> Iterator[Problem]:
    for option in ("atomic", "once"):
        if type(getattr(options, option)) is not bool:
            yield f"has {option} = {getattr(options, option)!r}.", "Use True or False."
    if options.once and options.atomic:
        yield (
            "is atomic, and once=True.",
            "Leave once out: an atomic step happens once. Or give atomic=False, if it calls the outside.",
        )
    if options.retry is None:
        return
    if isinstance(options.retry, Retry):
        yield from options.retry.problems()
    else:
        yield f"has retry = {options.retry!r}.", "Use Retry(…)."


def _was_problems(definition: Definition, was: object) -> Iterator[Problem]:
    if was == "":
        return
    if not is_name(was):
        yield (
            f"has was = {was!r}.",
            f"Use the name it had before: lower-case letters, digits and _, {MAX_NAME} at most.",
        )
    elif was in definition.steps:
        yield f"was {was!r}, which is a step of this class.", "Take was= out, or rename the other step."
    elif Counter(step.options.was for step in definition.steps.values())[str(was)] > 1:
        yield f"was {was!r}, and so was another step.", f"Leave was={was!r} with one of them."


def _of_steps(definition: Definition) -> Iterator[tuple[str, Problem]]:
    for name, step in definition.steps.items():
        for problem in step_problems(definition, name, step):
            yield name, problem


RULES = Rules(of_parts=(_of_steps,))
