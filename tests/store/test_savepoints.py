"""A part of a transaction that is undone by itself."""

import pytest
from django.db import DatabaseError, connection, transaction

from tests.testapp.models import Effect
from timeline.engine.execute_atomic import Savepoint

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_postgresql]


def write(name):
    Effect.objects.create(name=name)


def written():
    return sorted(Effect.objects.values_list("name", flat=True))


@pytest.fixture(params=[5, 0], ids=["as psycopg has it", "each statement prepared"])
def _prepared(request):
    connection.ensure_connection()
    before, connection.connection.prepare_threshold = connection.connection.prepare_threshold, request.param
    yield
    connection.connection.prepare_threshold = before


@pytest.mark.usefixtures("_prepared")
class TestSavepoint:
    def test_undoes_what_was_written_since_it_was_kept_and_no_more(self):
        with transaction.atomic():
            write("before")
            part = Savepoint("default")
            write("kept")
            part.keep()
            write("undone")
            part.undo()
            write("after")

        assert written() == ["after", "before", "kept"]

    def test_is_undone_after_an_error_of_the_database(self):
        with transaction.atomic():
            part = Savepoint("default")
            write("undone")
            with pytest.raises(DatabaseError), connection.cursor() as cursor:
                cursor.execute("SELECT nothing FROM nowhere")
            part.undo()
            write("after")

        assert written() == ["after"]


class TestKeep:
    def test_is_one_trip(self, django_assert_num_queries):
        with transaction.atomic():
            part = Savepoint("default")

            with django_assert_num_queries(1):
                part.keep()

    def test_refuses_a_part_that_asked_for_a_rollback(self):
        with transaction.atomic():
            part = Savepoint("default")
            write("undone")
            transaction.set_rollback(True)

            with pytest.raises(DatabaseError):
                part.keep()
            part.undo()

        assert written() == []

    def test_refuses_a_part_that_caught_an_error_of_the_database(self):
        with transaction.atomic():
            part = Savepoint("default")
            with pytest.raises(DatabaseError), connection.cursor() as cursor:
                cursor.execute("SELECT nothing FROM nowhere")

            with pytest.raises(DatabaseError):
                part.keep()
            part.undo()


class TestUndo:
    def test_forgets_the_hooks_of_its_part_only(self):
        called = []
        with transaction.atomic():
            transaction.on_commit(lambda: called.append("before"))
            part = Savepoint("default")
            transaction.on_commit(lambda: called.append("kept"))
            part.keep()
            transaction.on_commit(lambda: called.append("undone"))
            part.undo()
            transaction.on_commit(lambda: called.append("after"))

        assert called == ["before", "kept", "after"]

    def test_leaves_the_whole_transaction_to_be_undone_where_it_is_not_to_be_had(self):
        with transaction.atomic():
            part = Savepoint("default")
            write("undone")
            with connection.cursor() as cursor:
                cursor.execute("RELEASE SAVEPOINT timeline")

            with pytest.raises(DatabaseError):
                part.undo()
            assert transaction.get_rollback()

        assert written() == []
