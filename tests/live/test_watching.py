"""What the watcher reads for all open pages together, and whom it tells."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.asking import WHOLE
from timeline.clocks import MachineTime
from timeline.dispatch.worker_signs import give_sign
from timeline.lifecycle import State
from timeline.live.versions import EVERYTHING, EverythingAndWorkers, OneEntity, OneTask
from timeline.live.watcher import CHANGED, LOOK_AGAIN, OVER, PageListener, Watcher
from timeline.models import ScheduledTask, Sign
from timeline.shortcuts import cancel

PAGES = 500 if WHOLE else 50


class Page:
    """An open page that notes what it is told."""

    def __init__(self, subject, may_stay=lambda: True):
        self.heard = []
        self.listener = PageListener(subject, subject.mark("default"), self.heard.append, may_stay)


def watching(*pages):
    """A watcher of these, in no thread: it looks when it is told to."""
    watcher = Watcher("default")
    watcher._listeners = {page.listener for page in pages}
    watcher.look()
    return watcher


def asked_by(call):
    with CaptureQueriesContext(connection) as asked:
        call()
    return len(asked)


@pytest.fixture
def rows(make_task):
    return [
        make_task(entity_label="testapp.order", entity_id=str(number), state=State.SCHEDULED) for number in range(3)
    ]


@pytest.mark.django_db
class TestLook:
    def test_reads_once_for_all_pages_and_once_a_change_for_each_at_most(self, rows):
        lists = [Page(EVERYTHING) for _ in range(PAGES)]
        entities = [Page(OneEntity("testapp.order", str(number))) for number in range(PAGES)]
        of_lists, of_entities = watching(*lists), watching(*entities)

        assert asked_by(of_lists.look) == asked_by(of_entities.look) == 1
        cancel(rows[0], reason="so")
        assert asked_by(of_lists.look) == 1
        assert asked_by(of_entities.look) == 1 + PAGES
        assert asked_by(of_lists.look) == asked_by(of_entities.look) == 1

        assert [page.heard for page in lists] == [[CHANGED]] * PAGES
        assert [page.heard for page in entities] == [[CHANGED]] + [[]] * (PAGES - 1)

    def test_reads_once_for_pages_of_the_same_thing(self, rows):
        pages = [Page(OneTask(rows[0].pk)) for _ in range(PAGES)]
        watcher = watching(*pages)

        cancel(rows[0], reason="so")

        assert asked_by(watcher.look) == 2
        assert [page.heard for page in pages] == [[CHANGED]] * PAGES

    def test_reads_a_task_that_runs_each_time(self, make_task):
        runs, rests = (Page(OneTask(make_task(state=state).pk)) for state in (State.ACTIVE, State.SCHEDULED))
        watcher = watching(runs, rests)

        assert asked_by(watcher.look) == 2

    def test_tells_the_page_of_health_that_a_worker_came_is_missed_or_gone_and_not_each_of_its_signs(self, rows):
        health, everything = Page(EverythingAndWorkers()), Page(EVERYTHING)
        watcher = watching(health, everything)
        heard = []

        for act in (
            lambda: give_sign("one", using="default"),
            lambda: give_sign("one", using="default"),
            lambda: Sign.objects.update(seen_at=MachineTime(-timedelta(minutes=5))),
            lambda: Sign.objects.all().delete(),
        ):
            act()
            watcher.look()
            heard.append(len(health.heard))

        assert heard == [1, 1, 2, 3]
        assert everything.heard == []
        assert asked_by(watcher.look) == 3

    def test_tells_a_page_of_a_task_that_is_gone(self, rows):
        page = Page(OneTask(rows[0].pk))
        watcher = watching(page)

        ScheduledTask.objects.filter(pk=rows[0].pk).delete()
        watcher._seen = None
        watcher.look()

        assert page.heard == [CHANGED]

    def test_forgets_who_listens_in_a_loop_that_is_closed(self, rows):
        def closed(_what):
            raise RuntimeError("Event loop is closed")

        page = Page(EVERYTHING)
        page.listener.tell = closed
        watcher = watching(page)

        cancel(rows[0], reason="so")
        watcher.look()

        assert watcher._listeners == set()


@pytest.mark.django_db
class TestAskAgain:
    def test_ends_what_may_stay_no_longer_and_asks_seldom(self):
        page = Page(EVERYTHING, may_stay=lambda: False)
        watcher = watching(page)

        watcher._ask_again()
        assert page.heard == []
        page.listener.asked_at -= LOOK_AGAIN
        watcher._ask_again()

        assert page.heard == [OVER]

    def test_ends_only_the_page_whose_question_fails(self, caplog):
        """What answers is the host's: its sessions and its backends of logins may keep their data anywhere."""
        broken, other = Page(EVERYTHING, may_stay=lambda: 1 / 0), Page(EVERYTHING)
        watcher = watching(broken, other)
        for page in (broken, other):
            page.listener.asked_at -= LOOK_AGAIN

        watcher._ask_again()

        assert (broken.heard, other.heard) == ([OVER], [])
        assert "cannot be found out" in caplog.text


class TestAdd:
    def test_refuses_more_than_there_may_be(self, transactional_db):
        watcher = Watcher("default")
        first, second = (PageListener(EVERYTHING, (), lambda _what: None, lambda: True) for _ in range(2))

        assert [watcher.add(each, most=1) for each in (first, second)] == [True, False]
        thread = watcher._thread
        watcher.remove(first)
        thread.join(120)

        assert not thread.is_alive()
        assert watcher._thread is None

    def test_of_a_database_that_fails_ends_and_lets_pages_ask(self, transactional_db):
        heard, watcher = [], Watcher("default")
        broken = PageListener(EVERYTHING, (), heard.append, lambda: 1 / 0)
        broken.subject = Broken()
        watcher.add(broken, most=1)
        if thread := watcher._thread:
            thread.join(120)

        assert heard == [OVER]
        assert (watcher._thread, watcher._listeners) == (None, set())


class Broken:
    """Whose mark is no table's."""

    def mark(self, using):
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM no_such_table")
