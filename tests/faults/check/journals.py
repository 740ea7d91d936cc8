"""
Read the journals: files of one JSON object a line, ``*.jsonl``, which handlers, clients and the harness append to.

Lines have ``what`` and ``at`` (seconds since 1970). A line that a kill cut off is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.faults.check.history import Asked, Entered, Message, Trouble

Line = dict[str, Any]
FOREVER = float("inf")


class Journals(NamedTuple):
    """What was written down beside the database."""

    entered: list[Entered]
    troubles: list[Trouble]
    asked: list[Asked]
    messages: list[Message]
    follow_ups: dict[str, list[str]]
    roots: dict[str, list[str]]
    limits: dict[str, tuple[int, str]]
    machines: dict[str, dict[str, dict[str, str]]]


def read_journals(folder: Path) -> Journals:
    """Read all files of a folder."""
    lines: list[Line] = []
    entered: list[Entered] = []
    for path in sorted(folder.glob("*.jsonl")):
        its_own = list(_lines(path))
        entered += _entered(its_own)
        lines += its_own
    told = [line for line in lines if line["what"] == "declared"]
    return Journals(
        entered=entered,
        troubles=list(_troubles(lines)),
        asked=list(_asked(lines)),
        messages=[Message(tuple(line["tasks"]), line["token"]) for line in lines if line["what"] == "message"],
        follow_ups=told[-1]["follow_ups"] if told else {},
        roots=told[-1]["roots"] if told else {},
        limits={key: (most, until) for key, (most, until) in told[-1].get("limits", {}).items()} if told else {},
        machines=told[-1].get("machines", {}) if told else {},
    )


def _lines(path: Path) -> Iterator[Line]:
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            yield json.loads(text)
        except ValueError:
            continue


def _entered(lines: Iterable[Line]) -> Iterator[Entered]:
    """Put what one process wrote at the beginning and at the end of a handler together."""
    open_ones: dict[str, Line] = {}
    for line in lines:
        if line["what"] == "enter":
            open_ones[line["call"]] = line
        elif line["what"] == "leave" and line["call"] in open_ones:
            yield _as_entered(open_ones.pop(line["call"]), line["at"], line["how"])
    for line in open_ones.values():
        yield _as_entered(line, None, "")


def _as_entered(line: Line, left_at: float | None, how: str) -> Entered:
    seen = tuple(line["seen"]) if line["seen"] else None
    return Entered(
        line["task"], line["attempt"], line["kind"], line["key"], line["group"], line["at"], left_at, how, seen
    )


def _troubles(lines: Iterable[Line]) -> Iterator[Trouble]:
    """What was done: at once and for good (``killed``), or from a line on to the one that ends it (``since`` tells which)."""
    for line in lines:
        if line["what"] == "trouble":
            until = FOREVER if line["until"] is None else line["until"]
            yield Trouble(line["kind"], line["group"], line["at"], until)


def _asked(lines: Iterable[Line]) -> Iterator[Asked]:
    done = {line["call"]: line for line in lines if line["what"] == "done"}
    for line in lines:
        if line["what"] == "asked":
            answer = done.get(line["call"])
            tasks = tuple(answer.get("tasks") or line["tasks"]) if answer else tuple(line["tasks"])
            yield Asked(
                line["verb"], tasks, line["entity"], line["due_at"], line["at"], answer["at"] if answer else None
            )
