"""What only a database with many writers can show: collected on PostgreSQL alone."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections

from project.accounts.models import User
from tests.databases import VENDOR
from tests.postgresql import owned
from tests.postgresql.plans import around_tests
from tests.postgresql.races import Race, Sweep, entered, go_on
from timeline.testing import StoryClock, only_timelines

collect_ignore_glob = [] if VENDOR == "postgresql" else ["test_*.py"]


@pytest.fixture
def at_once():
    """Call functions at the same moment, each in a thread with a connection of its own; gives their results or errors."""

    def run(*calls):
        gate = threading.Barrier(len(calls))

        def one(call):
            try:
                gate.wait(120)
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


@pytest.fixture
def empty_database(django_db_blocker):
    """A database with nothing in it, beside the tests' own; gives the driver's environment."""
    with django_db_blocker.unblock():
        nodb = connections["default"]._nodb_cursor
        given = connection.settings_dict
        name = f"{given['NAME']}_new_project"  # Those who test at the same time have others.
        with nodb() as cursor:
            cursor.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            cursor.execute(f'CREATE DATABASE "{name}"')
        yield {
            "PGDATABASE": name,
            "PGHOST": str(given["HOST"]),
            "PGPORT": str(given["PORT"] or 5432),
            "PGUSER": str(given["USER"]),
            "PGPASSWORD": str(given["PASSWORD"]),
        }
        with nodb() as cursor:
            cursor.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@pytest.fixture(scope="module")
def many_owned(django_db_setup, django_db_blocker):
    """Many plans and seats of one owner, and half as many of another; filled once."""

    def fill(cursor):
        with only_timelines():
            owned.fill(cursor)

    with around_tests(django_db_blocker, owned.FILLED, fill):
        yield


@pytest.fixture
def owner(many_owned, db):
    """Who owns most of them."""
    return User.objects.get(email="ada@example.com")


@pytest.fixture
def owners_clock(db):
    """The timelines of what they own, at the moment of their tasks."""
    with only_timelines(owned.Renewing, owned.Seating), StoryClock(owned.NOW):
        yield
