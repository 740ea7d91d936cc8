"""Every address of ours, found in the patterns of a site; and every name that its code reads from a query or a form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from django.urls import URLPattern, URLResolver, get_resolver

import timeline

# What our code asks a request for, by whichever way.
_READ = re.compile(
    r"""(?:GET|POST|query_params|given|query)(?:\.(?:get|getlist)\(|\[)["']([\w-]+)["']"""
    r"""|parameters = \(([^)]*)\)|^    (\w+) = (?:\w+\.)?\w*(?:Field|Filter)\(""",
    re.MULTILINE,
)


class Route(NamedTuple):
    """
    An address.

    Args:
        pattern: As the site has it, with ``<uuid:pk>`` where something is captured.
        name: Of the route.
    """

    pattern: str
    name: str

    def filled(self, *values: str) -> str:
        """The address with these in place of what is captured, in turn."""
        given = iter(values * 3)
        return "/" + re.sub(r"<[^>]+>", lambda _found: next(given), self.pattern)


def routes(urls: str) -> list[Route]:
    """All routes of a site that lead to code of ours."""
    return sorted({route for route, callback in _all(get_resolver(urls), "") if _is_ours(route, callback)})


def _all(resolver: URLResolver, before: str) -> Iterator[tuple[Route, Any]]:
    for each in resolver.url_patterns:
        pattern = before + str(each.pattern).removeprefix("^").removesuffix("$")
        if isinstance(each, URLPattern):
            yield Route(pattern, each.name or ""), each.callback
        else:
            yield from _all(each, pattern)


def _is_ours(route: Route, callback: Any) -> bool:
    view = getattr(callback, "view_class", getattr(callback, "cls", callback))
    is_plain = not re.search(r"[\\()?]", route.pattern)  # What catches all the rest is attacked by made-up addresses.
    return is_plain and (view.__module__.startswith("timeline.") or route.name.startswith("timeline_"))


@cache
def names() -> list[str]:
    """What our code reads from queries and forms, and fields of its forms, filters and bodies."""
    found: set[str] = set()
    for folder in ("admin", "api", "live", "calendar", "webhooks", "features"):
        for file in (Path(timeline.__file__).parent / folder).rglob("*.py"):
            for read, listed, field in _READ.findall(file.read_text()):
                found |= {read, field, *re.findall(r'"(\w+)"', listed)}
    return sorted(found - {""})
