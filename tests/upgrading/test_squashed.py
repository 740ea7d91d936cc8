"""
A new database gets all tables from one migration, which replaces 0001 to 0070. What comes out is what those make, and a
database that has some of them goes on with the others.
"""

from __future__ import annotations

from typing import Any

import django
import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.db import connections, models
from django.db.migrations.exceptions import NodeNotFoundError
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from tests.asking import WHOLE
from tests.upgrading.one_by_one import migrate, names, one_by_one
from tests.upgrading.schema import schema_of

SQUASHED = "0001_squashed_0070_latest_runs_of_machines"
EARLIER = "0066_indexes_of_lists"
LAST = "0070_latest_runs_of_machines"
STOPS = ["0046_rows_with_limits", "0001_initial", "0012_workers_and_sending", "0069_open_runs_of_a_timeline"]


def applied(using: str) -> list[str]:
    return sorted(name for app, name in MigrationRecorder(connections[using]).applied_migrations() if app == "timeline")


def rows_of(using: str) -> dict[str, list[tuple[Any, ...]]]:
    """What is in our tables without times, and the permissions."""
    there = {}
    for model in apps.get_app_config("timeline").get_models():
        columns = [
            field.attname for field in model._meta.concrete_fields if not isinstance(field, models.DateTimeField)
        ]
        there[model._meta.label] = sorted(model._base_manager.using(using).values_list(*columns))
    ours = Permission.objects.using(using).filter(content_type__app_label="timeline")
    there["permissions"] = sorted(ours.values_list("content_type__model", "codename", "name"))
    return there


@pytest.fixture
def squashed(fresh: str) -> tuple[set[tuple[str, str, str]], dict[str, list[tuple[Any, ...]]]]:
    """Schema and rows of a new database, which is as it was before now."""
    migrate(using=fresh)
    assert SQUASHED in applied(fresh)
    made = schema_of(fresh), rows_of(fresh)
    migrate("zero", using=fresh)
    assert applied(fresh) == []
    return made


class TestModels:
    def test_are_the_same_both_ways(self):
        long = MigrationLoader(None, replace_migrations=False).project_state(("timeline", LAST))
        short = MigrationLoader(None).project_state(("timeline", SQUASHED))

        assert long.models.keys() == short.models.keys()
        for key, model in long.models.items():
            assert short.models[key] == model, key

    def test_of_tasks_have_what_indexes_need_before_what_may_be_empty(self):
        """At each change of a row, PostgreSQL compares each column of an index. Behind a NULL it has to go through the row."""
        task = MigrationLoader(None).project_state(("timeline", SQUASHED)).models["timeline", "scheduledtask"]
        indexed = {name.lstrip("-") for index in task.options["indexes"] for name in index.fields}
        places = {name: place for place, name in enumerate(task.fields)}
        first_empty = min(places[name] for name, field in task.fields.items() if field.null)
        needed = [name for name in indexed if not task.fields[name].null]

        assert "limit_key" in needed
        assert max(places[name] for name in needed) < first_empty


class TestADatabaseThatStoppedInTheMiddle:
    """As those of ``test_migrating`` did, with rows, at the first of all and at the tenth."""

    @pytest.mark.parametrize("name", STOPS if WHOLE else STOPS[:1])
    def test_goes_on_and_has_what_a_new_one_has(self, fresh, squashed, name):
        with one_by_one():
            migrate(name, using=fresh)
        assert applied(fresh)[-1] == name

        migrate(using=fresh)

        schema, rows = squashed
        assert schema_of(fresh) ^ schema == set()
        assert rows_of(fresh) == rows
        assert applied(fresh) == sorted([SQUASHED, *names()])


class TestADatabaseThatHasAll:
    def test_needs_nothing(self, fresh):
        migrate(using=fresh)
        MigrationRecorder(connections[fresh]).record_unapplied("timeline", SQUASHED)  # As it was left one by one.

        call_command("migrate", "timeline", database=fresh, check_unapplied=True, verbosity=0, skip_checks=True)
        migrate(using=fresh)

        assert applied(fresh) == sorted([SQUASHED, *names()])


class TestTheWayBack:
    def test_leads_through_each_migration(self, fresh):
        migrate(using=fresh)
        schema = schema_of(fresh)

        migrate(EARLIER, using=fresh)
        back = schema_of(fresh)
        left = [name for name in applied(fresh) if name != SQUASHED]
        migrate(using=fresh)

        assert left == sorted(names()[: names().index(EARLIER) + 1])
        assert {name.rpartition(".")[2] for _, name, _ in schema - back} >= {"timeline_run_of_machine"}
        assert schema_of(fresh) ^ schema == set()

    def test_begins_at_the_end_with_django_5(self, fresh):
        """A new database goes to the last one, and from there back; with later versions it stops where it is told."""
        if django.VERSION < (6, 0):
            with pytest.raises(NodeNotFoundError):
                migrate(EARLIER, using=fresh)
            return
        migrate(EARLIER, using=fresh)

        assert applied(fresh) == sorted(names()[: names().index(EARLIER) + 1])
