"""What other apps of the package say below the page of a task or an entity: the core knows none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from django.apps import apps
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest


class BesideLink(NamedTuple):
    """A link, and what is said of it after it."""

    text: str
    url: str
    said: str


class Beside(NamedTuple):
    """A line with its links; ``cut`` says so if there are more."""

    title: str
    links: Sequence[BesideLink]
    cut: str = ""


def beside_of(
    request: HttpRequest, name: str, context: Mapping[str, Any], *, site: str, using: str
) -> Iterator[Beside]:
    """
    Ask the apps: ``beside`` of their configuration names a function. It is given what the page shows that may have been told
    elsewhere, by primary keys: the task; of an entity, its tasks that have ended and the moves of its runs.
    """
    shown = list(_shown(name, context))
    if not shown:
        return
    for config in apps.get_app_configs():
        if config.name.startswith("timeline.") and (named := getattr(config, "beside", "")):
            tell: Callable[..., Beside | None] = import_string(named)
            if (found := tell(request, shown, site=site, using=using)) is not None:
                yield found


def _shown(name: str, context: Mapping[str, Any]) -> Iterator[UUID]:
    if name == "task":
        yield context["task"].pk
    elif name == "entity":
        yield from (item.task.pk for item in context["past"] if item.task is not None)
        yield from (move.id for machine, *_more in context["machines"] for move in machine.moves if move.id)
