"""Checks as ``manage.py`` runs them."""

import pytest
from django.core import checks
from django.core.management import CommandError, call_command

from tests.checks import ids
from tests.triggers import drop_trigger
from timeline.store.triggers import missing_triggers


@pytest.mark.django_db(databases=["default", "other"])  # A check of Django 6.1 connects to all of them.
class TestRegister:
    def test_has_manage_py_run_them(self, settings):
        settings.TIMELINE = {"LEESE": 1}

        assert "timeline.E001" in ids(checks.run_checks())

    def test_has_those_of_a_database_run_when_it_is_named(self, db):
        drop_trigger("guard_log")

        call_command("check")
        with pytest.raises(CommandError, match=r"timeline\.E004"):
            call_command("check", databases=["default"])

    def test_lets_migrate_go_on_where_it_only_warns(self, db, make_task):
        """Django refuses to migrate where a check of the database finds an error."""
        make_task(task_key="trial.long_gone", entity_label="shop.client", entity_id="1")

        call_command("migrate", "timeline", skip_checks=False, verbosity=0)

    def test_lets_migrate_put_back_a_trigger_as_the_hint_says(self, db):
        drop_trigger("guard_log")

        call_command("migrate", skip_checks=True, verbosity=0)

        assert missing_triggers("default") == []
