"""A thread beside the one that handlers run on, with a connection of its own."""

from __future__ import annotations

import threading
from contextvars import ContextVar

import pytest
from django.db import InternalError, OperationalError, connection, connections

from tests.databases import VENDOR
from tests.readonly import demote
from tests.testapp.models import Order
from timeline.worker.threads import SideThread, can_use_side_thread

pytestmark = pytest.mark.django_db(transaction=True)


SAID = ContextVar("SAID", default="nothing")


@pytest.fixture
def side_thread():
    with SideThread("default") as beside:
        yield beside


class TestCanUseSideThread:
    def test_needs_a_second_writer(self):
        assert can_use_side_thread("default") is (VENDOR == "postgresql")


class TestSubmit:
    def test_does_one_thing_after_the_other_on_another_thread(self, side_thread):
        done, go_on = [], threading.Event()

        first = side_thread.submit(lambda: (go_on.wait(120), done.append(threading.current_thread().name)))
        second = side_thread.submit(lambda: done.append(threading.current_thread().name))
        assert done == []
        go_on.set()
        first.result(20), second.result(20)

        assert len(done) == 2
        assert len({*done, threading.current_thread().name}) == 2

    def test_is_given_what_goes_with_it_and_gives_the_answer(self, side_thread):
        assert side_thread.submit(divmod, 7, 4).result(20) == (1, 3)

    def test_does_it_in_the_context_of_now(self, side_thread):
        token = SAID.set("something")
        future = side_thread.submit(SAID.get)
        SAID.reset(token)

        assert future.result(20) == "something"
        assert side_thread.submit(SAID.get).result(20) == "nothing"

    @pytest.mark.only_postgresql
    def test_has_a_connection_of_its_own(self, side_thread):
        def pid():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                return cursor.fetchone()[0]

        assert side_thread.submit(pid).result(20) == side_thread.submit(pid).result(20) != pid()

    @pytest.mark.only_postgresql
    def test_lets_go_of_the_connection(self, side_thread):
        def fail():
            connections["default"].ensure_connection()
            raise OperationalError("gone")

        with pytest.raises(OperationalError):
            side_thread.submit(fail).result()

        assert side_thread.submit(lambda: connections["default"].connection).result() is None

    @pytest.mark.only_postgresql
    def test_writes_again_when_its_server_took_no_writes(self, side_thread):
        side_thread.submit(demote).result(20)
        with pytest.raises(InternalError):
            side_thread.submit(Order.objects.create).result(20)

        assert side_thread.submit(Order.objects.create).result(20).pk


class TestTheEnd:
    def test_waits_for_what_was_asked_for_and_lets_go_of_the_connection(self):
        seen, go_on = [], threading.Event()

        def act():
            connection.ensure_connection()
            seen.append(connections["default"])
            assert go_on.wait(120)
            seen.append("done")

        with SideThread("default") as beside:
            beside.submit(act)
            go_on.set()

        beside_connection, said = seen
        assert said == "done"
        assert beside_connection.connection is None
