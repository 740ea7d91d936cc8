"""The connection to the database that a process of Celery's keeps from one message to the next."""

from __future__ import annotations

from django.db import connections


def renew(using: str) -> None:
    """
    Let go of a connection that is too old or does not answer any more; the next statement makes a new one.

    Celery closes it after each task, unless ``CELERY_DB_REUSE_MAX`` says otherwise; then nobody looks at it but us.
    """
    connection = connections[using]
    if connection.in_atomic_block:
        return  # Called by hand, in somebody's transaction.
    connection.close_if_unusable_or_obsolete()
    if connection.connection is not None and not connection.is_usable():
        connection.close()
