"""The site's log: what Celery's workers say of timelines, each line once."""

from __future__ import annotations

import os
import subprocess
import sys

from django.conf import settings

SAID = "an attempt failed"
SAY_IT_IN_A_WORKER = f"""
import logging
import django
django.setup()
from project.celery import app
app.log.setup(loglevel="WARNING")
logging.getLogger("timeline.endings").warning({SAID!r})
"""


class TestLogging:
    def test_has_each_line_once_in_a_worker_of_celerys(self):
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "project.settings"}

        ended = subprocess.run(
            [sys.executable, "-c", SAY_IT_IN_A_WORKER],
            cwd=settings.BASE_DIR,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        )

        assert ended.stderr.count(SAID) == 1
