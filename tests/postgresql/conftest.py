"""What only a database with many writers can show: collected on PostgreSQL alone."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from tests.databases import VENDOR
from tests.postgresql.races import Race, Sweep, entered, go_on
from timeline.testing import only_timelines

collect_ignore_glob = [] if VENDOR == "postgresql" else ["test_*.py"]


@pytest.fixture
def at_once():
    """Call functions at the same moment, each in a thread with a connection of its own; gives their results or errors."""

    def run(*calls):
        gate = threading.Barrier(len(calls))

        def one(call):
            try:
                gate.wait(10)
                return call()
            except Exception as error:  # noqa: BLE001 (the test looks at it)
                return error
            finally:
                connections.close_all()

        with ThreadPoolExecutor(len(calls)) as threads:
            return list(threads.map(one, calls))

    return run


@pytest.fixture
def races(db):
    """Have just the timelines of ``races``, and nobody waiting."""
    entered.clear()
    go_on.clear()
    with only_timelines(Race, Sweep):
        yield
