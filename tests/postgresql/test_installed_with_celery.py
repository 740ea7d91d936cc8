"""What the page about Celery says, with PostgreSQL, in the same new project."""

from __future__ import annotations

import re

import pytest

from tests.brokers import URLS, answers
from tests.new_project import SIGN_UP, steps
from tests.pages import DOCS
from tests.tools import TOOLS


@pytest.fixture
def redis():
    """A Redis database that nothing else of ours uses."""
    if not answers("redis"):
        pytest.skip(f"no redis answers: {TOOLS['redis'].remedy}")
    return re.sub(r"/\d+$", "/13", URLS["redis"])


class TestAddItWithCelery:
    def test_lets_a_timeline_run(self, new_project, empty_database, redis):
        first, *before = steps("Add it to your project")
        with_celery = steps("From the trial to Celery", DOCS / "how-to" / "celery.md")
        new_project.variables |= {**empty_database, "BROKER_URL": redis}

        new_project.follow(with_celery.pop(0))  # It brings what the first one does.
        for command in first.commands[1:]:
            new_project.run(*command)
        for step in before:
            if step.file:
                new_project.follow(step)
        new_project.run("python", "manage.py", "makemigrations", "accounts")
        for step in with_celery:
            new_project.follow(step)
        assert "no issues" in new_project.run("python", "manage.py", "check", "--database", "default")
        key = new_project.shell(SIGN_UP)
        completed = new_project.wait_until_completed(key, "trial.remind", "trial.expire")

        assert first.commands[0] == ["pip", "install", "/path/to/checkout"]
        assert completed == ["trial.remind", "trial.expire"]
        # Our two workers. Beat may have to be killed: its handler of SIGTERM writes beat's tables, and where the signal came
        # amid a query on the same connection, psycopg waits for itself.
        assert new_project.stop()[:2] == [0, 0]
