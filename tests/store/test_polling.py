"""What a poll asks of the database ends, even if the database hangs."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from timeline.clocks import MachineTime
from timeline.dispatch.worker_signs import give_sign, let_go_of_the_silent
from timeline.models import Sign
from timeline.store.poll_queries import polling

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_postgresql]

BOUNDED, UNBOUNDED = ("5s", "30s", "10s"), ("0", "0", "0")


def settings_now(cursor):
    names = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
    cursor.execute("SELECT " + ", ".join(f"current_setting('{name}')" for name in names))
    return cursor.fetchone()


def give_sign_and_close(worker):
    try:
        give_sign(worker, using="default")
    finally:
        connection.close()


class TestPolling:
    def test_bounds_all_its_statements_and_none_after_it(self):
        with connection.cursor() as cursor:
            with polling("default"):
                assert settings_now(cursor) == BOUNDED
            assert settings_now(cursor) == UNBOUNDED

    def test_bounds_how_long_it_stands_still_but_in_no_transaction_of_others(self):
        with transaction.atomic(), connection.cursor() as cursor:
            with polling("default"):
                pass

            assert settings_now(cursor)[2] == "0"

    def test_does_not_keep_a_worker_from_giving_a_sign_though_it_stands_still(self):
        sign = Sign.objects.create(worker="host:1:ab12", seen_at=MachineTime(timedelta(seconds=-10)))

        def stand_still():
            with polling("default", {"idle_in_transaction_session_timeout": "50ms"}):
                let_go_of_the_silent(just_waited=False, using="default")
                with ThreadPoolExecutor() as threads:
                    threads.submit(give_sign_and_close, sign.worker).result(timeout=120)
                Sign.objects.get()

        with pytest.raises(DatabaseError):
            stand_still()
        connection.close()
        assert Sign.objects.get().missed_at is None
