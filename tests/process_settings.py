"""Settings of processes that tests start: the tests' own, on the database and the broker that the test gave them."""

import os
from datetime import timedelta

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS, TIMELINE_WEBHOOKS

# What a test does not kill is not to be given up, however long this machine lets it wait: by default it would be so sooner.
# Billing starts by the clock: workers of tests that are not about it would have it to do.
INSTALLED_APPS = [
    *[name for name in INSTALLED_APPS if name != "project.billing"],
    "tests.features.debounce.bursts",  # of debounce
    "tests.features.limits.narrow",  # of limits
    "tests.features.machines.moving",  # of machines
    "tests.features.on_failure.failing",  # of on_failure
    "tests.features.rates.paced",  # of rates
    "tests.features.sleep.naps",  # of sleep
]

CELERY_BROKER_URL = os.environ.get("TEST_BROKER_URL", "")
TIMELINE = {
    "POLL_INTERVAL": timedelta(seconds=float(os.environ.get("TEST_POLL_INTERVAL", "0.05"))),
    "LEASE": timedelta(seconds=float(os.environ.get("TEST_LEASE", "60"))),
    "SILENCE": timedelta(seconds=float(os.environ.get("TEST_SILENCE", "60"))),
    "QUEUE_PREFIX": os.environ.get("TEST_QUEUE_PREFIX", "timeline"),
}
TIMELINE_WEBHOOKS = TIMELINE_WEBHOOKS | {"ALLOW_LOOPBACK": True}

if os.environ.get("TEST_AUTOCOMMIT") == "off":
    DATABASES["default"]["AUTOCOMMIT"] = False  # noqa: F405

if os.environ.get("TEST_LOGGING") == "none":
    LOGGING = {}  # As of a host that has set up nothing.
