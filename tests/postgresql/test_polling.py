"""What a poll asks of the database ends, even if the database hangs."""

import pytest
from django.db import connection

from timeline.operations._polling import polling

BOUNDED, UNBOUNDED = ("5s", "30s"), ("0", "0")


def settings_now(cursor):
    cursor.execute("SELECT current_setting('lock_timeout'), current_setting('statement_timeout')")
    return cursor.fetchone()


@pytest.mark.django_db(transaction=True)
class TestPolling:
    def test_bounds_all_its_statements_and_none_after_it(self):
        with connection.cursor() as cursor:
            with polling("default"):
                assert settings_now(cursor) == BOUNDED
            assert settings_now(cursor) == UNBOUNDED
