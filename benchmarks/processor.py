"""Processor time of PostgreSQL's process for a connection, as Linux tells it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter


def backend_clock() -> Callable[[], float]:
    """Give what tells the processor time that PostgreSQL has spent on this connection, in seconds."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid(), pg_postmaster_start_time()")
        told = Path(f"/proc/{cursor.fetchone()[0]}")
    try:
        if b"postgres" in (told / "cmdline").read_bytes():
            return lambda: int((told / "schedstat").read_text().split()[0]) / 1e9
    except OSError:
        pass
    print("PostgreSQL is not on this machine: the time that statements took stands for its processor time.")
    return perf_counter
