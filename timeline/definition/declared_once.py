"""Refuses what is declared twice: the second would take the place of the first in silence."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import FrameType
from typing import Any, Final

from timeline.exceptions import DefinitionError

_declared: Final[dict[tuple[str, str], ModuleSpec]] = {}  # Module and class → the import that declared it.


def check_class_once(cls: type) -> None:
    """
    Refuse a second class of one name in a module (``DefinitionError``): it would take the place of the first.

    Only an import's own lines can declare a name twice. A reload is another import; shells and doctests import nothing.
    """
    module = sys.modules.get(cls.__module__)
    spec = getattr(module, "__spec__", None)
    if module is None or spec is None or not getattr(spec, "_initializing", False):
        return
    frame = _frame_of(cls.__module__, sys._getframe(1))
    if frame is None or frame.f_globals is not vars(module) or frame.f_code.co_name != "<module>":
        return
    key = (cls.__module__, cls.__qualname__)
    if _declared.get(key) is spec:
        problem = f"is declared twice in {cls.__module__}: the second would take the place of the first."
        raise DefinitionError(cls.__name__, problem, "Give one of them another name.")
    _declared[key] = spec


def _frame_of(module: str, frame: FrameType | None) -> FrameType | None:
    """The innermost frame that runs code of the module."""
    while frame is not None and frame.f_globals.get("__name__") != module:
        frame = frame.f_back
    return frame


def check_method_once(method: Callable[..., Any]) -> None:
    """Refuse a second task or step of one name in a class (``DefinitionError``); at the decorator."""
    name, own = getattr(method, "__name__", ""), __name__.partition(".")[0]
    body: FrameType | None = sys._getframe(1)
    while body is not None and str(body.f_globals.get("__name__")).partition(".")[0] == own:
        body = body.f_back
    given = body.f_locals if body is not None else {}
    home, known = str(given.get("__qualname__", "")), given.get(name)
    is_here = home and getattr(method, "__qualname__", "") == f"{home}.{name}"
    if is_here and hasattr(known, "method") and hasattr(known, "options"):
        problem = "is declared twice: the second would take the place of the first."
        raise DefinitionError(home.rpartition(".")[2], problem, "Give one of them another name.", name)
