"""See which code of the package is entered while something is done, in this thread and in those that it starts."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import timeline

PACKAGE = Path(timeline.__file__).resolve().parent
_INSIDE = f"{PACKAGE}/"
_TOOLS = f"{PACKAGE}/testing/"  # A path may be gone with these, but they are no part of it.
_Remembering = type(functools.cache(lambda: None))


@dataclass(slots=True)
class Trace:
    """
    What was entered.

    Args:
        code: Of functions, in order of the first entry.
        statements: Files of SQL that were read, in order.
    """

    code: dict[CodeType, None] = field(default_factory=dict)
    statements: dict[Path, None] = field(default_factory=dict)


_traces: list[Trace] = []


@contextmanager
def traced() -> Iterator[Trace]:
    """
    Trace what is done within the block.

    What functions of the package remember is forgotten first: a reader has to read them too, and so each time is the same.
    """
    _forget()
    _watch_files()
    trace = Trace()

    def see(frame: FrameType, event: str, _argument: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(_INSIDE) and not name.startswith(_TOOLS):
            trace.code.setdefault(frame.f_code)

    _traces.append(trace)
    threading.setprofile(see)
    sys.setprofile(see)
    try:
        yield trace
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        _traces.remove(trace)


def _forget() -> None:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == timeline.__name__:
            for found in list(vars(module).values()):
                if isinstance(found, _Remembering):
                    found.cache_clear()


@functools.cache
def _watch_files() -> None:
    """Notice statements that are read: an audit hook is told of each file that is opened. It cannot be taken away again."""

    def see(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and _traces and str(arguments[0]).startswith(_INSIDE) and str(arguments[0]).endswith(".sql"):
            _traces[-1].statements.setdefault(Path(arguments[0]))

    sys.addaudithook(see)
