"""SQLSTATE: PostgreSQL's code for an error."""

from __future__ import annotations


def sqlstate_of(error: BaseException) -> str:
    """
    The SQLSTATE of an error of Django's; empty if there is none, as in an error that the driver itself raised.

    psycopg 3 has it as ``sqlstate``, psycopg2 as ``pgcode``.
    """
    cause = error.__cause__
    return str(getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None) or "")
