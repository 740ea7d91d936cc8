"""
How much code a reader meets on six paths: files, definitions and lines of the package that are entered. See ``counting.py``.

On SQLite, in a folder of its own; with ``--postgresql`` on the server ``DATABASE_URL`` names, or one of a pip package.
Without look-ahead: what is due is run inline, as by a test's clock. The poll sends to a broker in memory.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from benchmarks.databases import site

NAMES = ("emit", "run", "save", "admin", "rest", "poll")


@contextmanager
def _sqlite() -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="timeline-paths-") as folder:
        os.environ |= {"DJANGO_SETTINGS_MODULE": "project.settings", "DEMO_DIR": folder, "BROKER_URL": "memory://"}
        import django
        from django.core.management import call_command
        from django.db import connections

        django.setup()
        call_command("migrate", verbosity=0)
        try:
            yield
        finally:
            connections.close_all()


def table() -> None:
    """Print the figures of all paths."""
    from benchmarks.paths.counting import count
    from benchmarks.paths.walking import PATHS, walk

    print("| path | files | definitions | lines | SQL files | SQL lines |")
    print("|---|--:|--:|--:|--:|--:|")
    for path in PATHS:
        print(f"| {path.title} |", " | ".join(f"{figure:,}" for figure in count(walk(path))), "|")


def detail(name: str) -> None:
    """Print what is entered on one path, in order of the first entry: what to read, and in which order."""
    from benchmarks.paths.counting import count, entered
    from benchmarks.paths.walking import PATHS, walk

    path = next(path for path in PATHS if path.name == name)
    trace = walk(path)
    for definition in entered(trace):
        print(f"{definition.lines:4}  {definition.place}  {definition.name}")
    for statement in trace.statements:
        print(f"{len(statement.read_text(encoding='utf-8').splitlines()):4}  {statement.name}")
    found = count(trace)
    print(
        f"\n{path.title}: {found.definitions:,} definitions in {found.files:,} files, {found.lines:,} lines;", end=" "
    )
    print(f"of SQL {found.statements:,} files, {found.statement_lines:,} lines. Lines by part:")
    for part, lines in sorted(_parts(entered(trace)), key=lambda found: -found[1]):
        print(f"{lines:6,}  {part}")


def _parts(definitions: Iterable) -> Iterable[tuple[str, int]]:
    """Lines of each part of the package."""
    lines: dict[str, int] = defaultdict(int)
    for definition in definitions:
        lines[definition.place.split("/")[1].partition(":")[0]] += definition.lines
    return lines.items()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paths", description=__doc__.strip().splitlines()[0])
    parser.add_argument(
        "--detail", choices=NAMES, nargs="+", help="of these paths, files and definitions in order of first entry"
    )
    parser.add_argument(
        "--postgresql", action="store_true", help="on PostgreSQL, where other code is entered in places"
    )
    arguments = parser.parse_args()
    with site(BROKER_URL="memory://") if arguments.postgresql else _sqlite():
        import logging

        logging.getLogger("timeline").setLevel(logging.ERROR)
        for name in arguments.detail or ():
            detail(name)
        if not arguments.detail:
            table()
