"""SQLSTATEs, as each driver has them."""

from __future__ import annotations

import pytest
from django.db import DatabaseError

from timeline.dialects import sqlstate_of
from timeline.store.database_errors import may_be_written_later


class OfPsycopg3(Exception):
    """As psycopg 3 raises what a trigger raised; where there is no code, it has None."""

    sqlstate = "P0001"


class OfPsycopg2(Exception):
    """As psycopg2 does."""

    pgcode = "P0001"


def raised_by(cause):
    error = DatabaseError("the trigger says no")
    error.__cause__ = cause
    return error


class TestSqlstateOf:
    @pytest.mark.parametrize("driver", [OfPsycopg3, OfPsycopg2])
    def test_is_what_the_driver_says(self, driver):
        error = raised_by(driver())

        assert sqlstate_of(error) == "P0001"
        assert not may_be_written_later(error)

    def test_is_empty_where_there_is_none(self):
        without = OfPsycopg2()
        without.pgcode = None

        assert sqlstate_of(raised_by(without)) == ""
        assert sqlstate_of(DatabaseError()) == ""
