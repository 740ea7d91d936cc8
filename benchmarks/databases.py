"""A PostgreSQL database for one benchmark, dropped at its end."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from tests.databases import start_server


def server_url() -> str:
    """Tell the server that ``DATABASE_URL`` names, or else start one from a pip package, which ends with this process."""
    if url := os.environ.get("DATABASE_URL"):
        return url
    folder = tempfile.mkdtemp(prefix="timeline-benchmark-")
    # What is registered first runs last: the server has ended by then.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return start_server(Path(folder))


@contextmanager
def own_database(called: str = "") -> Iterator[str]:
    """Make an empty database, and drop it at the end; give its URL. Who has several at a time calls each something."""
    server = server_url()
    name = "_".join(filter(None, ("timeline_benchmark", str(os.getpid()), called)))
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield urlsplit(server)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def site(**environment: str) -> Iterator[str]:
    """Set Django up on a database of its own, with all tables; give the database's URL. SIGTERM too ends in good order."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with own_database() as url, tempfile.TemporaryDirectory(prefix="timeline-benchmark-") as folder:
        given = {"DJANGO_SETTINGS_MODULE": "benchmarks.settings", "BENCHMARK_DATABASE_URL": url, "DEMO_DIR": folder}
        os.environ.update(given | environment)
        import django
        from django.core.management import call_command
        from django.db import connections

        django.setup()
        call_command("migrate", verbosity=0)
        try:
            yield url
        finally:
            connections.close_all()


def server_version() -> str:
    """Tell which PostgreSQL it is."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        return str(cursor.fetchone()[0].split()[0])
