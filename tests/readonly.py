"""A server that takes no writes: what a connection finds that was kept over a failover."""

from __future__ import annotations

from django.db import connection

# As far as this connection can tell, its server has become read-only; a new connection is not concerned.
DEMOTE = "SET default_transaction_read_only = on"


def demote():
    """Let the connection of the calling thread find its server read-only."""
    with connection.cursor() as cursor:
        cursor.execute(DEMOTE)


def backend():
    """Which of the server's processes serves the calling thread."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return cursor.fetchone()[0]
