"""A site of our own for a while: server, database, journals, and the environment of its processes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tests.faults.harness.postgres import Postgres
from tests.faults.harness.roles import Journal, surroundings
from tests.forking import start


def new_folder() -> Path:
    """A folder with a path short enough for sockets, which PostgreSQL's own user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="faults-", dir="/tmp"))
    folder.chmod(0o755)
    return folder


def remove_folder(folder: Path) -> None:
    """Take it away with all there is in it."""
    shutil.rmtree(folder, ignore_errors=True)


class Site:
    """
    One database and what belongs to it.

    Args:
        postgres: The server.
        database: Name of the database; made, and migrated, unless there is a template of it.
        folder: For journals and logs.
        template: Name of a database that was migrated before.
    """

    def __init__(self, postgres: Postgres, database: str, folder: Path, template: str = "") -> None:
        self.postgres = postgres
        self.folder = folder
        self.journal = Journal(folder)
        self.url = postgres.url(database)
        self._database = database
        postgres.create(database, template or "template1")
        if not template:
            manage(self.environment(), "migrate", "--run-syncdb", "--verbosity", "0")

    def environment(self, port: int | None = None, **more: str) -> dict[str, str]:
        """
        What a process of the site is told.

        Args:
            port: Of the link through which it sees the database; None: it sees it directly.
        """
        through = f"postgresql://postgres:@127.0.0.1:{port}/{self._database}?sslmode=disable&gssencmode=disable"
        return {
            "DJANGO_SETTINGS_MODULE": "tests.faults.settings",
            "TEST_DATABASE_URL": self.url if port is None else through,
            "TEST_FOLDER": str(self.folder),
            "FAULTS_WITNESS_URL": self.url,
            "TEST_QUEUE_PREFIX": "faults",
            **more,
        }


def manage(environment: dict[str, str], *command: str) -> None:
    """Run a command of ``manage.py`` to its end."""
    told = Path(environment["TEST_FOLDER"]) / "manage.log"
    with told.open("ab") as log:
        process = start("manage", *command, environment={**surroundings(), **environment}, log=log)
    assert process.wait(600) == 0, told.read_text()
