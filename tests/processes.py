"""Workers that tests start as processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from django.conf import settings
from django.db import connection

from tests.databases import url_of

DEADLINE = 30


def start_worker(tmp_path: Path, name: str) -> subprocess.Popen[bytes]:
    """Start a real worker process on the tests' database."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.process_settings",
        "TEST_DATABASE_URL": url_of(connection.settings_dict),
        "TEST_FOLDER": str(tmp_path),
    }
    command = [sys.executable, "manage.py", "timeline_worker", "--name", name]
    with (tmp_path / f"{name}.log").open("wb") as log:
        return subprocess.Popen(command, cwd=settings.BASE_DIR, env=environment, stdout=log, stderr=log)


def wait_for(condition, what: str) -> None:
    """Wait until it holds, for half a minute at most."""
    give_up = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < give_up, f"{what} did not happen"
        time.sleep(0.05)
