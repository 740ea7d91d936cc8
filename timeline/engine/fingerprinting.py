"""Fingerprint: the same text for failures of the same cause, so that people see a group and not a thousand rows."""

from __future__ import annotations

import hashlib
import os
import re
import sysconfig
import traceback
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final

import timeline

LENGTH: Final = 16  # Hex digits.
MAX_READ: Final = 2_000  # Characters of a message.
MAX_FRAMES: Final = 2_000
MAX_MEMBERS: Final = 50  # In a group of exceptions, groups inside it included.

_OURS: Final = f"{Path(timeline.__file__).parent}{os.sep}"
_LIBRARY: Final = tuple({f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib")})
_INSTALLED: Final = re.compile(r"[\\/](?:site|dist)-packages[\\/]")

# The order matters: quoted text is replaced as a whole, before its parts. Each pattern reads the text once, whatever the text.
_VARYING: Final = (
    re.compile(r"(?<!\w)'[^'\n]*'(?!\w)"),
    re.compile(r"(?<!\w)\"[^\"\n]*\"(?!\w)"),
    re.compile(r"«[^»\n]*»|“[^”\n]*”|„[^“”\n]*[“”]|`[^`\n]*`"),
    re.compile(r"(?<![\w/\\])(?:[A-Za-z]:[\\/]|~?/)[^\s,;:()<>]+"),
    re.compile(r"(?<![\w.+-])[\w.+-]+@[\w.-]+"),
    re.compile(r"\b\w*\d[\w.:+-]*"),
)


def fingerprint(task_key: str, error: BaseException | None = None, *, code: str = "") -> str:
    """
    Sum up a failure: its task, the class of the exception, the host's function that raised it, and the message without its
    changing parts: numbers, ids, quoted values, paths.

    Args:
        task_key: Key of the task whose attempt failed.
        error: The exception; None: there was none.
        code: Reason code, if there was no exception: the worker was lost.

    Returns:
        16 hex digits.
    """
    parts = [task_key, code, *(_parts(error) if error is not None else ())]
    return hashlib.sha256("\x1f".join(parts).encode(errors="replace")).hexdigest()[:LENGTH]


def _parts(error: BaseException) -> list[str]:
    """The parts of an exception that are summed up; for a group, those of each different member, in any order."""
    members = {"\x1e".join(_own_parts(member)) for member in islice(_members(error), MAX_MEMBERS)}
    return [*_own_parts(error), *sorted(members)]


def _members(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        ahead = list(error.exceptions)
        while ahead:
            member = ahead.pop(0)
            yield member
            if isinstance(member, BaseExceptionGroup):
                ahead += member.exceptions


def _own_parts(error: BaseException) -> tuple[str, str, str]:
    kind = type(error)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(error, RecursionError):  # Where the stack ran out changes; where it began does not.
        return name, _place(error.__traceback__, outermost=True), ""
    return name, _place(error.__traceback__), constant(message_of(error))


def message_of(error: BaseException) -> str:
    """The text of ``str(error)``, also if that itself fails."""
    line = "".join(traceback.format_exception_only(error)).strip()
    return line.partition(": ")[2] or line


def constant(message: str) -> str:
    """A message without its changing parts; each of them shows as ``#``."""
    text = message[:MAX_READ]
    for varying in _VARYING:
        text = varying.sub("#", text)
    return " ".join(text.split())


def _place(trace: TracebackType | None, *, outermost: bool = False) -> str:
    """
    The host's function that raised it, or that called what raised it; else the last function that is not ours; else none.
    """
    host, other = "", ""
    for frame in islice(_frames(trace), MAX_FRAMES):
        path = frame.f_code.co_filename
        if path.startswith(_OURS):
            continue
        named = f"{frame.f_globals.get('__name__', '')}:{frame.f_code.co_qualname}"
        if _INSTALLED.search(path) or path.startswith((*_LIBRARY, "<frozen")):
            other = named
        elif outermost:
            return named
        else:
            host = named
    return host or other


def _frames(trace: TracebackType | None) -> Iterator[FrameType]:
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next
