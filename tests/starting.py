"""
Which files have tests that start processes, found by reading and not by importing: ``pytest -m processes`` asks some 180 of
13,000 tests, and to import and rewrite all files would take longer than many of these.

Words that only look like such a fixture, as in a docstring, cost an import. That no file is missed is asked of each test
that is collected: see ``check``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

# Fixtures that start processes, or need what another one is.
FIXTURES: Final = frozenset({"benchmark", "broker", "live_server", "new_project", "wheel", "workers"})
MARK: Final = "processes"
_WORD: Final = re.compile(rf"\b({'|'.join(sorted({MARK, *FIXTURES}))})\b")
_ROOT: Final = Path(__file__).parent


class Missed(Exception):
    """
    A test starts processes, and its file does not say so in words: ``make tests`` would never ask it.

    Write the mark or the fixture in that file, or in a ``conftest.py`` of its folder.
    """


def may_start(path: Path) -> bool:
    """Tell whether a file of tests, or a ``conftest.py`` of the folders it is in, names the mark or one of the fixtures."""
    folders = [folder for folder in path.parents if _ROOT in folder.parents]
    return any(map(_names_one, (path, *(folder / "conftest.py" for folder in folders))))


def check(paths: Iterable[Path]) -> None:
    """
    Make sure that none is missed.

    Args:
        paths: Of the files of tests that start processes.

    Raises:
        Missed: if one is not found by reading.
    """
    if missed := sorted(str(path) for path in set(paths) if not may_start(path)):
        raise Missed(", ".join(missed))


@cache
def _names_one(path: Path) -> bool:
    return path.exists() and _WORD.search(path.read_text(encoding="utf-8")) is not None
