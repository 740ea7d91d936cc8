"""What PostgreSQL calls an error: its SQLSTATE."""

from __future__ import annotations


def sqlstate_of(error: BaseException) -> str:
    """
    The SQLSTATE of an error of Django's; empty where there is none, as where the driver itself raised it.

    psycopg 3 has it as ``sqlstate``, psycopg2 as ``pgcode``.
    """
    cause = error.__cause__
    return str(getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None) or "")
