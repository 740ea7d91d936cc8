"""Connections that answer and can write, and others."""

from __future__ import annotations

import pytest
from django.db import InternalError, connection, connections, transaction

from tests.readonly import backend, demote
from tests.testapp.models import Order
from timeline.store.database_errors import drop, drop_unless_usable, is_usable

pytestmark = pytest.mark.django_db(transaction=True)


class TestIsUsable:
    def test_is_a_connection_that_answers_and_can_write(self):
        connection.ensure_connection()

        assert is_usable("default")

    @pytest.mark.only_postgresql
    def test_is_none_whose_server_takes_no_writes(self):
        """Django's own question is answered there."""
        demote()

        assert connection.is_usable()
        assert not is_usable("default")
        connection.close()

    @pytest.mark.only_postgresql
    def test_is_none_that_is_gone(self):
        connection.ensure_connection()
        connection.connection.close()

        assert not is_usable("default")
        connection.close()

    @pytest.mark.only_postgresql
    def test_is_none_that_was_never_made(self):
        connection.close()

        assert not is_usable("default")
        assert connection.connection is None

    @pytest.mark.only_postgresql
    def test_is_no_query_for_code_that_counts_them(self, django_assert_num_queries):
        connection.ensure_connection()

        with django_assert_num_queries(0):
            is_usable("default")


@pytest.mark.only_postgresql
class TestDropUnlessUsable:
    def test_lets_the_next_statement_write_again(self):
        demote()
        with pytest.raises(InternalError):
            Order.objects.create()

        drop_unless_usable("default")

        assert Order.objects.create().pk

    def test_keeps_one_that_can_write(self):
        before = backend()

        drop_unless_usable("default")

        assert backend() == before

    def test_leaves_a_transaction_to_whoever_began_it(self):
        demote()

        with transaction.atomic():
            before = backend()
            drop_unless_usable("default")
            assert backend() == before
        connection.close()


class Pool:
    """Notes of each connection that it is given back whether it is closed."""

    def __init__(self):
        self.closed = []

    def putconn(self, given):
        self.closed.append(bool(given.closed))


@pytest.mark.only_postgresql
class TestDrop:
    def test_gives_a_pool_nothing_that_it_could_lend_again(self, monkeypatch):
        connection.ensure_connection()
        pool = Pool()
        connection.connection._pool = pool
        monkeypatch.setattr(type(connections["default"]), "pool", pool)

        drop("default")

        assert pool.closed == [True]
        assert connection.connection is None
