"""Benchmarks run as processes, on a PostgreSQL that needs not be the tests' own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.conf import settings

from benchmarks.databases import server_url


@pytest.fixture
def benchmark():
    """Run one with these arguments, on the server ``DATABASE_URL`` names or one that comes with a pip package."""
    server = server_url()  # Not below pytest's own folder, which the next pytest to start takes from the server's user.

    def run(*arguments: str, module: str = "benchmarks.comparing") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", module, *arguments]
        # It is not looked at which lines of ours a benchmark runs: that would be all that it measures.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
        environment |= {"DATABASE_URL": server}
        return subprocess.run(
            command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, timeout=600, check=False
        )

    return run


@pytest.fixture
def results():
    """Figures of two peers: one that can all, taken twice, and one that can little."""
    able = {
        "package": "able",
        "version": "1.2",
        "python": "3.12.1",
        "title": "Able & Co",
        "slots": 10,
        "together": True,
        "notes": "Exactly once.",
        "settings": [{"name": "queues", "value": "default:10", "why": "as many as it likes"}],
        "values": {
            "schedule_one": [1000.0, 2000.0],
            "schedule_many": [30000.0, 40000.0],
            "drain.nothing.1": [500.0, 700.0],
            "drain.nothing.2": [1500.0, 1700.0],
            "drain.count.2": [800.0, 900.0],
            "drain.long.1": [25.0, 25.0],
            "poll.1000": [0.5, 0.7],
        },
        "not_offered": {},
        "counted": [{"workers": 1, "jobs": 100, "completed": 100, "counted": 100}],
    }
    unable = {
        **able,
        "title": "Unable",
        "slots": 1,
        "together": False,
        "settings": [],
        "values": {"schedule_one": [10.0], "drain.nothing.2": [160.0]},
        "not_offered": {"schedule_many": "no call for many", "cancel": "no way to cancel"},
        "counted": [{"workers": 2, "jobs": 100, "completed": 90, "counted": 97}],
    }
    return {
        "machine": {"CPUs": "2", "PostgreSQL": "15.1"},
        "plan": {
            "runs": 2,
            "rows": 2_000,
            "bulk": 20_000,
            "window": 4.0,
            "jobs": [["nothing", 100], ["long", 10]],
            "workers": [1, 2],
            "sizes": [1000],
        },
        "peers": {"able": able, "unable": unable},
        "left_out": {"absent": "needs Python 3.12 or later, and there is none"},
    }
