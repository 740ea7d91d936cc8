"""Settings of processes that tests start: the tests' own, on the database that the test runner made."""

from datetime import timedelta

from tests.settings import *  # noqa: F403

TIMELINE = {"POLL_INTERVAL": timedelta(milliseconds=50)}
