"""The second database of the tests is a copy of the first; where it cannot be one, that is said."""

import pytest
from django.db import DatabaseError, connections

from tests.copying import copy_when_made

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def make(monkeypatch):
    """
    Make the second database; in place of migrating it, a word is given: ``make(expected="name of the first")``.

    The first was made before, and has its name.
    """

    def make(expected):
        first, second = connections["default"].creation, connections["other"].creation
        monkeypatch.setattr(second, "create_test_db", lambda *_given: "migrated")
        monkeypatch.setattr(first, "_get_test_db_name", lambda: expected)
        copy_when_made("default", "other")
        return second.create_test_db()

    return make


def refuse(*_given, **_options):
    raise DatabaseError("is being accessed by other users")


class TestWhereNoCopyCanBeMade:
    def test_it_is_migrated_and_the_error_is_said(self, make, monkeypatch, capsys):
        monkeypatch.setattr("tests.copying.shutil.copyfile", refuse)
        monkeypatch.setattr(connections["other"].creation, "_nodb_cursor", refuse)

        assert make(str(connections["default"].settings_dict["NAME"])) == "migrated"
        assert "migrated: DatabaseError: is being accessed by other users" in capsys.readouterr().err

    def test_it_is_migrated_and_why_is_said_if_the_first_was_not_made(self, make, capsys):
        assert make("test_another") == "migrated"
        assert "and was not made as test_another" in capsys.readouterr().err
