"""Django's own tests of its tasks, on our backend."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

import django
from seeing import folder, seen

# What is other here, by design: why, and in which tests.
OTHER: Final = {
    "They change what the backend has in its memory; ours keeps rows.": (
        "test_dummy_backend.DummyBackendTestCase.test_refresh_result",
        "test_dummy_backend.DummyBackendTestCase.test_refresh_result_async",
    ),
    "They ask a list in memory from async code; ours is read from a database.": (
        "test_dummy_backend.DummyBackendTestCase.test_enqueue_task_async",
        "test_tasks.TaskTestCase.test_enqueue_task_async",
    ),
    "It calls refresh() instead of arefresh() in async code.": ("test_tasks.TaskTestCase.test_refresh_result",),
    "They want a backend that gives no results and takes no times; ours does both.": (
        "test_immediate_backend.ImmediateBackendTestCase.test_cannot_get_result",
        "test_immediate_backend.ImmediateBackendTestCase.test_cannot_refresh_result",
        "test_immediate_backend.ImmediateBackendTestCase.test_cannot_pass_run_after",
    ),
    "It wants the task run before the transaction that enqueues it is committed; here no worker sees it until then.": (
        "test_immediate_backend.ImmediateBackendTransactionTestCase.test_doesnt_wait_until_transaction_commit_by_default",
    ),
    "It wants SystemExit caught; here it ends what runs the task, as anywhere in Python.": (
        "test_immediate_backend.ImmediateBackendTestCase.test_catches_exception",
    ),
}


@seen("Django's own tests of its tasks pass on our backend, but for those that ask for something else by design")
def own_tests() -> str:
    log = folder() / "own.log"
    command = [sys.executable, "-m", "django", "test", "tasks", "--pythonpath", str(source()), "--settings"]
    with log.open("wb") as written:
        subprocess.run([*command, "site_settings", "--noinput"], stdout=written, stderr=written, check=False)
    said = log.read_text()
    ran = re.search(r"^Ran (\d+) tests", said, re.MULTILINE)
    assert ran, said[-3000:]
    failed = set(re.findall(r"^(?:FAIL|ERROR): \w+ \(tasks\.([\w.]+)\)", said, re.MULTILINE))
    other = {name for names in OTHER.values() for name in names}

    assert int(ran[1]) > 80
    assert failed == other, f"{sorted(failed ^ other)}\n{said[-20000:]}"
    return f"{ran[1]} tests, {len(other)} fail by design, see OTHER in {Path(__file__).name}"


def source() -> Path:
    """The folder that Django's tests of this version are in. They are no part of what is installed."""
    kept = Path(sys.prefix) / "source"
    if not kept.exists():
        fetched = folder() / "source"
        wanted = f"Django=={django.get_version()}"
        command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download", "--no-deps"]
        subprocess.run([*command, "--no-binary", ":all:", "--dest", str(fetched), wanted], check=True)
        with tarfile.open(next(fetched.glob("*.tar.gz"))) as archive:
            tests = [member for member in archive if "/tests/tasks/" in member.name]
            archive.extractall(fetched, members=tests, filter="data")
        next(fetched.glob("*/tests")).rename(kept)
    return kept
