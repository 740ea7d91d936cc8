"""A database for one host: a file, or one on the server that ``DATABASE_URL`` names, dropped afterwards."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from psycopg import sql

SERVER: Final = "postgresql://postgres@127.0.0.1:5432/postgres"
VENDORS: Final = ("sqlite", "postgresql")


@contextmanager
def database(vendor: str, host: str, folder: Path) -> Iterator[str]:
    """Make a database that nobody else uses; gives its URL."""
    if vendor == "sqlite":
        yield f"sqlite:///{folder / 'site.sqlite3'}"
        return
    server = os.environ.get("DATABASE_URL", SERVER)
    name = f"timeline_foreign_{host}_{uuid4().hex[:8]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield urlsplit(server)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
