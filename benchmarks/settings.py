"""Settings of the benchmarks and of the processes they start: the site's, on a database and queues of their own."""

import os

import dj_database_url

from benchmarks import tracing
from project.settings import *  # noqa: F403
from project.settings import INSTALLED_APPS, LOGGING, QUEUE_PREFIX

INSTALLED_APPS = [*INSTALLED_APPS, *(["timeline.webhooks"] if "BENCHMARK_WEBHOOKS" in os.environ else []), "benchmarks"]
INSTALLED_APPS += tracing.APPS
if "BENCHMARK_TASKS" in os.environ:
    INSTALLED_APPS += ["timeline.django_tasks"]
    TASKS = {
        "default": {
            "BACKEND": "timeline.django_tasks.TimelineBackend",
            "OPTIONS": {
                "modules": ["benchmarks.peers.functions"],
                "atomic": "shared" if os.environ["BENCHMARK_TASKS"] == "shared" else False,
            },
        }
    }
TIMELINE_WEBHOOKS = {"KEYS": ["b2YgdGhlIHRlc3RzIG9ubHksIG5vdCBhIHNlY3JldCE="], "ALLOW_LOOPBACK": True}
SECRET_KEY = "of the benchmarks only"  # noqa: S105
DATABASES = {"default": dict(dj_database_url.parse(os.environ["BENCHMARK_DATABASE_URL"], conn_max_age=None))}
TIMELINE = {"QUEUE_PREFIX": QUEUE_PREFIX}
LOGGING["loggers"]["timeline"]["level"] = "WARNING"
tracing.set_up()
