"""Settings of processes that tests start: the tests' own, on the database that the test runner made."""

import os
from datetime import timedelta

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES

DATABASES = {"default": {**DATABASES["default"], "NAME": os.environ["TEST_DATABASE"]}}
TIMELINE = {"POLL_INTERVAL": timedelta(milliseconds=50)}
