"""The check of autocommit."""

from django.db import connection, connections, router

from tests.checks import ids
from timeline.checks import check_autocommit


class ElsewhereRouter:
    """Keeps the tables of timelines in ``other``."""

    def allow_migrate(self, db, app_label, **hints):
        return db == "other" if app_label == "timeline" else None


class TestCheckAutocommit:
    def test_is_silent_when_all_is_well(self):
        assert check_autocommit(None) == []

    def test_sees_that_it_is_off_and_says_what_to_do(self, monkeypatch):
        monkeypatch.setitem(connection.settings_dict, "AUTOCOMMIT", False)

        [error] = check_autocommit(None)

        assert (error.id, error.is_serious()) == ("timeline.E005", True)
        assert "DATABASES['default']" in error.hint

    def test_leaves_a_database_alone_that_may_have_no_tables_of_ours(self, monkeypatch):
        monkeypatch.setitem(connections["other"].settings_dict, "AUTOCOMMIT", False)

        assert check_autocommit(None) == []

    def test_goes_by_the_routers(self, monkeypatch):
        monkeypatch.setattr(router, "routers", [ElsewhereRouter()])
        monkeypatch.setitem(connection.settings_dict, "AUTOCOMMIT", False)
        assert check_autocommit(None) == []

        monkeypatch.setitem(connections["other"].settings_dict, "AUTOCOMMIT", False)

        assert ids(check_autocommit(None)) == ["timeline.E005"]
