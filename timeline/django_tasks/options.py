"""``OPTIONS`` of a backend, and what they mean for ``@task``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from timeline.definition import Retry
from timeline.definition.handlers import Options
from timeline.django_tasks.framework import InvalidTaskBackend
from timeline.exceptions import DefinitionError
from timeline.suggestions import did_you_mean

OF_TASKS: Final = ("atomic", "expires", "retry", "timeout")
KNOWN: Final = (*OF_TASKS, "database", "modules")
Made = TypeVar("Made")


def options_from(given: Mapping[str, Any], alias: str) -> Options:
    """
    Read ``OPTIONS``; ``InvalidTaskBackend`` for an unknown name or a wrong value of ``retry``.

    Functions are written for a framework that has no transaction around them and tries them once, and so it is by default.
    """
    for name in given:
        if name not in KNOWN:
            remedy = did_you_mean(name, KNOWN, otherwise=f"Known: {', '.join(sorted(KNOWN))}.")
            raise wrong(alias, f"has the option {name!r}, which is not known. {remedy}")
    modules = given.get("modules", ())
    if isinstance(modules, str) or not all(isinstance(name, str) for name in modules):
        raise wrong(alias, f"has modules = {modules!r}. Name them in a list.")
    told = {name: given[name] for name in OF_TASKS if name in given}
    return Options(**{"atomic": False} | told | {"retry": _retry(given.get("retry", {}), alias)})


def wrong(alias: str, problem: str) -> Exception:
    """The error for a backend that is set up wrongly."""
    return InvalidTaskBackend(f"The backend {alias!r} in TASKS {problem}")


def _retry(given: object, alias: str) -> Retry:
    if isinstance(given, Retry):
        return given
    if not isinstance(given, Mapping):
        raise wrong(alias, f"has retry = {given!r}. Give a dict of what Retry takes, such as {{'max_attempts': 5}}.")
    try:
        return Retry(**{"max_attempts": 1} | dict(given))
    except DefinitionError as error:
        raise wrong(alias, f"has retry = {given!r}. {error.remedy}") from None
