"""The site's Celery app; what it needs to know is in the settings, as ``CELERY_…``."""

from __future__ import annotations

import gc
import os

from celery import Celery
from celery.signals import worker_process_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

app = Celery("project")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_process_init.connect
def freeze(**_signal: object) -> None:
    """What is loaded by now stays: the garbage collector need not look through it again and again."""
    gc.collect()
    gc.freeze()
