"""Checks of whose a database is, and whether anybody polls it."""

from datetime import timedelta

import pytest
from django.core.checks import run_checks
from django.db import connection

from tests.checks import ids
from timeline.checks import check_identity, check_site
from timeline.clocks import MachineTime
from timeline.models import Identity
from timeline.store.site import sign_of_poller


def check():
    return check_identity(None, databases=["default"])


class TestCheckIdentity:
    def test_is_silent_where_somebody_polls(self, db):
        sign_of_poller(using="default")

        assert check() == []

    @pytest.mark.parametrize("polled_at", [None, MachineTime(timedelta(minutes=-6))], ids=["never", "long ago"])
    def test_sees_that_nobody_polls(self, db, polled_at):
        Identity.objects.update(polled_at=polled_at, adopted_at=MachineTime(timedelta(minutes=-6)))

        [warning] = check()

        assert warning.id == "timeline.W007"
        assert "timeline_worker" in warning.hint

    def test_leaves_time_to_start_a_poller_once_the_tables_are_there(self, db):
        Identity.objects.update(polled_at=None, adopted_at=MachineTime(timedelta(minutes=-4)))

        assert check() == []

    def test_waits_ten_intervals_where_polls_are_rare(self, db, settings):
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(minutes=1)}
        Identity.objects.update(polled_at=MachineTime(timedelta(minutes=-6)))

        assert check() == []

    def test_expects_no_poller_while_the_site_is_being_developed(self, db, settings):
        settings.DEBUG = True

        assert check() == []

    def test_sees_another_sites_database(self, db, settings):
        settings.TIMELINE = {"SITE": "staging"}
        Identity.objects.update(site="production")

        [warning] = check()

        assert warning.id == "timeline.W008"
        assert "'production'" in warning.msg

    def test_leaves_what_commits_nothing_to_the_check_of_that(self, db, monkeypatch):
        monkeypatch.setitem(connection.settings_dict, "AUTOCOMMIT", False)

        assert check() == []

    @pytest.mark.parametrize("databases", [None, []])
    def test_asks_no_database_that_it_was_not_given(self, databases):
        assert check_identity(None, databases=databases) == []

    def test_does_not_fail_before_the_tables_are_there(self, bare_database):
        bare_database("wal")

        assert check_identity(None, databases=["bare"]) == []


class TestCheckSite:
    def test_sees_that_the_site_has_no_name(self):
        assert ids(check_site(None)) == ["timeline.W009"]

    def test_is_silent_where_it_has_one(self, settings):
        settings.TIMELINE = {"SITE": "production"}

        assert check_site(None) == []

    @pytest.mark.django_db(databases=["default", "other"])  # A check of Django 6.1 connects to all of them.
    def test_is_asked_only_of_a_deployment(self):
        assert "timeline.W009" not in ids(run_checks())

        assert "timeline.W009" in ids(run_checks(include_deployment_checks=True))
