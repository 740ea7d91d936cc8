"""A project that has psycopg2, and no psycopg 3."""

from __future__ import annotations

import pytest
from django.db import connection

from tests.new_project import SIGN_UP, steps
from tests.processes import wait_for
from timeline.signals import CHANNEL

pytestmark = pytest.mark.django_db(transaction=True)

# Whose polls come so seldom that only being woken explains that something runs soon.
SETTINGS = """
import os
from datetime import timedelta

DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": os.environ["PGDATABASE"]}}
TIMELINE = {"POLL_INTERVAL": timedelta(minutes=10)}
"""

MANY = """
from datetime import timedelta
from importlib.util import find_spec
from django.db import connection
from django.utils import timezone
from accounts.models import User
from timeline.models import ScheduledTask
from timeline.shortcuts import emit_many

in_a_year = timezone.now() + timedelta(days=365)
users = User.objects.bulk_create(User(username=f"user {number}", trial_ends_at=in_a_year) for number in range(20))
emit_many("trial.started", users)
print(connection.Database.__name__, find_spec("psycopg"), ScheduledTask.objects.count())
"""


def somebody_listens(database):
    """Whether a process listens in this database."""
    asked = "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND query = %s"
    with connection.cursor() as cursor:
        cursor.execute(asked, [database, f"LISTEN {CHANNEL}"])
        return cursor.fetchone()


class TestPsycopg2:
    def test_lets_a_timeline_run_and_wakes_its_worker(self, new_project, empty_database):
        new_project.variables |= empty_database
        for step in steps("Add it to your project"):
            if step.file or step.text.startswith(("$ pip", "$ django-admin")):
                new_project.follow(step)
        new_project.environment.install("psycopg2-binary>=2.9.9,<3")
        new_project.add("shop/settings.py", SETTINGS)

        new_project.run("python", "manage.py", "makemigrations", "accounts")
        new_project.run("python", "manage.py", "migrate")
        many = new_project.shell(MANY)
        new_project.run("python", "manage.py", "timeline_worker")
        wait_for(lambda: somebody_listens(empty_database["PGDATABASE"]), "the listening")
        key = new_project.shell(SIGN_UP)
        completed = new_project.wait_until_completed(key, "trial.remind", "trial.expire")

        assert many == "psycopg2 None 40"
        assert completed == ["trial.remind", "trial.expire"]
        assert "no issues" in new_project.run("python", "manage.py", "check", "--database", "default")
        assert new_project.stop() == [0]
