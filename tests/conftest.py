"""What tests share."""

from __future__ import annotations

import gc
import os
import secrets
from collections.abc import Iterator
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections
from django.db.backends.sqlite3.base import DatabaseWrapper
from django.utils import translation

from project.accounts.models import User
from tests import rows, starting
from tests.asking import is_asked, is_entered, is_left_out, room_of
from tests.brokers import broker  # noqa: F401 (a fixture)
from tests.copying import copy_when_made
from tests.databases import VENDOR
from tests.flushing import quick_flush, vacuum_large
from tests.new_project import new_project  # noqa: F401 (a fixture)
from tests.packages import wheel  # noqa: F401 (a fixture)
from tests.processes import Process, kill, start_worker
from tests.rows import NOW
from tests.testapp.models import Order
from tests.tools import TOOLS
from timeline.registry import registry
from timeline.store import floors
from timeline.testing import only_timelines
from timeline.webhooks.receivers import assume_none

pytest_plugins = ["tests.acting", "tests.billing", "tests.booking"]

collect_ignore = [] if find_spec("django_celery_beat") else ["management/test_install_beat.py"]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out files that are asked on the other database alone, and files that have none of the tests that are wanted."""
    if collection_path.is_dir() and Path(__file__).parent in collection_path.parents:
        return None if is_entered(collection_path.relative_to(Path(__file__).parent).as_posix()) else True
    if not collection_path.name.startswith("test_"):
        return None
    path = collection_path.relative_to(Path(__file__).parent).as_posix()
    fuzzed = path == "api/test_fuzzing.py" and "FUZZ_CASES" in os.environ  # make fuzz has both databases.
    return None if fuzzed or is_asked(path, VENDOR) else True


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs a tool which is not there, and say how to have it."""
    for tool in [TOOLS[name] for mark in item.iter_markers("needs") for name in mark.args]:
        if not tool.found():
            pytest.skip(f"there is no {tool.name.removeprefix('a ')}: {tool.remedy}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where ``CI`` is set, let nothing be skipped: the session fails, as if a test had."""
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    if "CI" in os.environ and reporter and reporter.stats.get("skipped") and not session.exitstatus:
        reporter.write_line("\nTests were skipped; where CI is set, none may be.", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what is about the other database, and mark those that need more than a database."""
    other = "only_postgresql" if VENDOR == "sqlite" else "only_sqlite"
    items[:] = [item for item in items if not item.get_closest_marker(other)]
    root = Path(__file__).parent
    for item in items:
        if item.path.name.startswith("test_plans"):
            item.add_marker("plans")
        if "postgresql" in (item.path.parent.name, room_of(_below(root, item).split("::")[0])):
            item.add_marker("of_postgresql")
        if starting.FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(starting.MARK)
    items[:] = [
        item for item in items if not is_left_out(_below(root, item), [mark.name for mark in item.iter_markers()])
    ]


def _below(root: Path, item: pytest.Item) -> str:
    """``folder/test_file.py::Class::test``, below the root."""
    return "::".join([item.path.relative_to(root).as_posix(), *item.nodeid.split("::")[1:]])


def pytest_configure(config: pytest.Config) -> None:
    """
    Let the collector of garbage wait until all tests are collected: nearly all that this makes stays.

    Processes of pytest-xdist, which this one starts, have to collect the same tests in the same order: sets lie in one order.
    """
    gc.disable()
    if config.getoption("numprocesses", None):
        os.environ.setdefault("PYTHONHASHSEED", str(secrets.randbelow(10_000)))


def pytest_report_header() -> str:
    """With what a run can be repeated."""
    return f"PYTHONHASHSEED={os.environ.get('PYTHONHASHSEED', '')}"


def pytest_collection_finish() -> None:
    """Let it pass over the thousands of tests that were collected, and come less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


class Thawed:
    """Whether a test let the collector look again at all that was there before the tests: the worker does, when it ends."""

    def __init__(self) -> None:
        self.thaw, self.since_the_last_test = gc.unfreeze, False
        gc.unfreeze = self

    def __call__(self) -> None:
        self.thaw()
        self.since_the_last_test = True

    def freeze_again(self) -> None:
        """Let it pass over all that again; to go through it takes a second each time that a test wants garbage collected."""
        if self.since_the_last_test:
            gc.collect(1)
            gc.freeze()
            self.since_the_last_test = False


thawed = Thawed()


def pytest_runtest_logfinish() -> None:
    """Between two tests."""
    thawed.freeze_again()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say why a test was asked once more (``--reruns``): a defect may show rarely."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.write_line(f"RERUN {report.nodeid}: {report.longreprtext}")


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    """Let the second database be a copy of the first, once that is migrated: all migrations take as long as a hundred tests."""
    copy_when_made("default", "other")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """
    Let commits not wait for the disk: it is processes that die here, never the machine. And let the databases be dropped at the
    end, though a thread of the last test may still be letting its connection go.
    """
    if VENDOR != "postgresql":
        yield
        return
    with django_db_blocker.unblock():
        # Without a test that asks for it, a database is not made.
        made = [name for name in connections if connections[name].settings_dict["NAME"].startswith("test_")]
        for alias in made:
            with connections[alias].cursor() as cursor:
                name = connections[alias].ops.quote_name(connections[alias].settings_dict["NAME"])
                cursor.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
                cursor.execute("SET synchronous_commit = off")
    yield
    with django_db_blocker.unblock():
        for alias in made:
            with connections[alias].cursor() as cursor:
                cursor.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )


@pytest.fixture(autouse=True)
def _without_the_others() -> Iterator[None]:
    """Let only tests that ask for the demo's billing, which starts by the clock, its bookings and Django's tasks know them."""
    aside = ("project.billing.", "project.portal.", "timeline.django_tasks.", "timeline.ojs.")
    others = [known.cls for known in registry if not known.cls.__module__.startswith(aside)]
    with only_timelines(*others):
        yield


@pytest.fixture(autouse=True)
def _without_endpoints() -> None:
    """Let each test begin as a process does that knows of no endpoint of webhooks."""
    for alias in connections:
        assume_none(alias)


@pytest.fixture(autouse=True)
def _without_floors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each look for due tasks begin at the beginning, however slow the machine is and whatever other tests left dead."""
    monkeypatch.setattr(floors, "MANY", 10**12)
    for alias in connections:
        floors.look_anew(using=alias)


@pytest.fixture(autouse=True)
def _in_the_sites_language() -> None:
    """Let no test go on in the language of the last one's request."""
    translation.deactivate()


@pytest.fixture(scope="session", autouse=True)
def _quick_flush() -> Iterator[None]:
    with quick_flush():
        yield


@pytest.fixture(scope="module", autouse=True)
def _vacuumed(django_db_blocker: Any) -> Iterator[None]:
    yield
    with django_db_blocker.unblock():
        for alias in connections:
            vacuum_large(connections[alias])


@pytest.fixture
def now() -> datetime:
    """A moment of story time: 1 March 2026, 9 o'clock UTC."""
    return NOW


@pytest.fixture
def order(db: Any) -> Order:
    """An entity with an integer key."""
    return Order.objects.create()


@pytest.fixture
def user(db: Any) -> User:
    """An account that has no run: made without an event."""
    return User.objects.create(email="ada@example.com", website="ada.example", signed_up_at=NOW, trial_ends_at=NOW)


@pytest.fixture
def make_task(db: Any) -> Any:
    """The function of ``tests.rows``, in a test that may use the database."""
    return rows.make_task


@pytest.fixture
def make_tasks(db: Any) -> Any:
    """The function of ``tests.rows`` for many, in a test that may use the database."""
    return rows.make_tasks


class _Foreign(DatabaseWrapper):
    """A file of SQLite that says it is another kind of database."""

    vendor = "mysql"


@pytest.fixture
def foreign_database(db: Any) -> Iterator[str]:
    """An alias of a host's database of a kind that we do not run on, with nothing in it."""
    connections["foreign"] = _Foreign({**connection.settings_dict, "NAME": ":memory:", "OPTIONS": {}}, "foreign")
    yield "foreign"
    if (opened := connections["foreign"].connection) is not None:
        opened.close()  # Django itself leaves a database in memory open.
    del connections["foreign"]


@pytest.fixture
def workers(tmp_path):
    """Start workers; those still alive at the end are killed."""
    started = []

    def start(name: str, *options: str) -> Process:
        started.append(start_worker(tmp_path, name, *options))
        return started[-1]

    yield start
    for process in started:
        kill(process)
