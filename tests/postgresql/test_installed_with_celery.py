"""What README says of PostgreSQL and Celery, in the same new project."""

from __future__ import annotations

import re
import shlex

import pytest
from django.db import connection, connections

from tests.brokers import URLS, answers
from tests.new_project import README, SIGN_UP, blocks

DATABASE = "test_timeline_new_project"


@pytest.fixture
def empty_database(django_db_blocker):
    """A database with nothing in it, beside the tests' own; gives the driver's environment."""
    with django_db_blocker.unblock():
        nodb = connections["default"]._nodb_cursor
        with nodb() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
            cursor.execute(f"CREATE DATABASE {DATABASE}")
        given = connection.settings_dict
        yield {
            "PGDATABASE": DATABASE,
            "PGHOST": str(given["HOST"]),
            "PGPORT": str(given["PORT"] or 5432),
            "PGUSER": str(given["USER"]),
            "PGPASSWORD": str(given["PASSWORD"]),
        }
        with nodb() as cursor:
            cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")


@pytest.fixture
def redis():
    """A Redis database that nothing else of ours uses."""
    if not answers("redis"):
        pytest.skip("no redis answers: start one on loopback at its standard port, or name one in REDIS_URL")
    return re.sub(r"/\d+$", "/13", URLS["redis"])


class TestAddItWithCelery:
    def test_lets_a_timeline_run(self, new_project, empty_database, redis):
        settings, app, package = blocks("py")
        new_project.environment |= {**empty_database, "BROKER_URL": redis}
        new_project.add("shop/settings.py", settings)
        new_project.add("shop/celery.py", app)
        new_project.add("shop/__init__.py", package)
        part = README.partition("### With Celery")[2].partition("More:")[0]
        lines = [shlex.split(line.removeprefix("$ ")) for line in part.splitlines() if line.startswith("$ ")]

        new_project.manage("makemigrations", "accounts")
        new_project.manage("migrate")
        for words in lines:
            if words[0] == "python":
                new_project.manage(*words[2:])
            else:
                new_project.start(*words)
        assert "no issues" in new_project.manage("check", "--database", "default")
        key = new_project.manage("shell", "--verbosity", "0", "-c", SIGN_UP).strip()
        completed = new_project.wait_until_completed(key, "trial.remind", "trial.expire")

        assert completed == ["trial.remind", "trial.expire"]
        # Our two workers. Beat may have to be killed: its handler of SIGTERM writes beat's tables, and where the signal came
        # amid a query on the same connection, psycopg waits for itself.
        assert new_project.stop()[:2] == [0, 0]
