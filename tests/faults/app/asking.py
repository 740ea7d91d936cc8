"""``python -m tests.faults.app.asking KIND COUNT PAYLOAD``: schedule so many tasks that are due now, and print their ids."""

from __future__ import annotations

import json
import sys

import django

django.setup()

from django.utils import timezone  # noqa: E402

from tests.faults.app.models import Subject  # noqa: E402
from timeline.shortcuts import schedule  # noqa: E402

if __name__ == "__main__":
    kind, count, payload = sys.argv[1:]
    for _ in range(int(count)):
        subject = Subject.objects.create()
        print(schedule(f"loose.{kind}", subject, at=timezone.now(), payload=json.loads(payload)).task.pk, flush=True)
