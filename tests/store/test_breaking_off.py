"""A transaction that is broken off from another connection."""

from __future__ import annotations

import threading

import pytest
from django.db import OperationalError, connection, transaction

from timeline.engine.shared_transaction import break_off, wait_for_no_lock_long

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_postgresql]


def elsewhere(broken):
    """Break it off on a thread with a connection of its own; give what that says."""
    said = []

    def act():
        said.append(break_off(broken, using="default"))
        connection.close()

    thread = threading.Thread(target=act)
    thread.start()
    thread.join()
    return said[0]


class TestBreakOff:
    def test_ends_a_transaction_with_its_connection(self):
        with pytest.raises(OperationalError), transaction.atomic():  # noqa: PT012 (only the last of these raises)
            assert elsewhere(wait_for_no_lock_long("default"))
            connection.cursor().execute("SELECT 1")

    def test_leaves_the_connection_alone_once_its_transaction_is_over(self):
        with transaction.atomic():
            over = wait_for_no_lock_long("default")

        with transaction.atomic():
            assert not elsewhere(over)
            connection.cursor().execute("SELECT 1")
