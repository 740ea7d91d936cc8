"""What happens while a handler is entered: somebody else acts, or the connection is lost."""

from __future__ import annotations

import threading
from datetime import timedelta

from django.db import OperationalError, connection, connections

from timeline.clocks import story_now
from timeline.engine.groups import run


def elsewhere(act):
    """Act in another thread, with a connection of its own."""

    def call():
        try:
            act()
        finally:
            connections.close_all()

    thread = threading.Thread(target=call)
    thread.start()
    thread.join(120)
    assert not thread.is_alive()


def attempt(row, days=1):
    """Run a task once, so many days from now; None: what came of it was not recorded."""
    done = run(task_ids=[row.pk], clock=lambda: story_now("default") + timedelta(days=days), using="default")
    return done[0] if done else None


def lost_connection():
    """Lose this connection, and give the error that says so."""
    connection.connection.close()
    try:
        with connection.wrap_database_errors:
            connection.connection.execute("SELECT 1")
    except OperationalError as error:
        return error
    raise AssertionError
