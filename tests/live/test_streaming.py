"""Open pages under uvicorn: they are told of changes, as long as who looks is logged in and may do so."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack, contextmanager
from datetime import timedelta

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client

from project.accounts.models import User
from tests.admin.conftest import LIST, Care, detail
from tests.processes import DEADLINE
from tests.serving import uvicorn_serving
from tests.testapp.models import Order
from timeline.live import watcher
from timeline.live.pages import AT_A_TIME
from timeline.shortcuts import cancel, schedule
from timeline.testing import StoryClock, only_timelines

STREAM = {"Accept": "text/event-stream"}


@pytest.fixture
def site(transactional_db, now):
    with only_timelines(Care), StoryClock(now), uvicorn_serving() as address:
        yield address


def staff(name, now, *permissions):
    made = User.objects.create(email=f"{name}@example.com", is_staff=True, signed_up_at=now, trial_ends_at=now)
    made.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    return made


@pytest.fixture
def vera(site, now):
    return staff("vera", now, "view_scheduledtask")


@pytest.fixture
def rows(site, now):
    orders = [Order.objects.create() for _ in range(2)]
    return [
        schedule("care.call", order, at=now + timedelta(hours=1), payload={"about": "a lid"}).task for order in orders
    ]


@pytest.fixture
def browser(site):
    """Somebody's browser: ``browser(user)``; of nobody: ``browser()``."""
    with ExitStack() as opened:

        def log_in(user=None):
            known, name = Client(), settings.SESSION_COOKIE_NAME
            if user:
                known.force_login(user)
            cookies = {name: known.cookies[name].value} if user else {}
            return opened.enter_context(httpx.Client(base_url=site, cookies=cookies, timeout=DEADLINE))

        yield log_in


@contextmanager
def listening(client, address):
    """What a page is told, one after the other."""
    with client.stream("GET", address, headers=STREAM) as answer:
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/event-stream")
        assert "no-store" in answer.headers["Cache-Control"]
        yield (line.removeprefix("event: ") for line in answer.iter_lines() if line.startswith("event: "))


class TestStream:
    def test_tells_of_a_change_and_of_no_other(self, browser, vera, rows):
        client = browser(vera)
        with listening(client, LIST) as of_all, listening(client, detail(rows[0])) as of_one:
            assert (next(of_all), next(of_one)) == ("here", "here")

            cancel(rows[1], reason="so")
            assert next(of_all) == "changed"
            cancel(rows[0], reason="so")

            assert (next(of_one), next(of_all)) == ("changed", "changed")

    def test_is_for_those_whom_the_page_lets_in(self, browser, vera, rows, now):
        nora = staff("nora", now)

        assert browser(nora).get(LIST, headers=STREAM).status_code == 403
        assert browser(nora).get(detail(rows[0]), headers=STREAM).status_code == 404
        assert browser().get(LIST, headers=STREAM).status_code == 302

    @pytest.mark.parametrize("how", ["logout", "rights"])
    def test_ends_with_the_login_and_with_the_rights(self, browser, vera, rows, how, monkeypatch):
        monkeypatch.setattr(watcher, "LOOK_AGAIN", 0)
        client = browser(vera)
        with listening(client, LIST) as told:
            assert next(told) == "here"
            if how == "logout":
                client.post("/admin/logout/", headers=_forged(client))
            else:
                vera.user_permissions.clear()

            assert list(told) == ["over"]

    @pytest.mark.only_postgresql
    @pytest.mark.parametrize("age", [0, 60])
    def test_keeps_no_connection_to_the_database_for_an_open_page(self, browser, vera, rows, age, monkeypatch):
        """One for all of them, at most, is the watcher's."""
        monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", age)
        before, client = _connections(), browser(vera)
        with ExitStack() as pages:
            told = [pages.enter_context(listening(client, LIST)) for _ in range(6)]
            assert {next(one) for one in told} == {"here"}

            assert _falls_to(1, lambda: len(_connections() - before))

    def test_is_bounded_and_refused_without_a_question_to_the_database(self, browser, vera, rows, settings):
        """Not even who asks is looked up: a user that is nobody is answered alike."""
        settings.TIMELINE = {"LIVE_STREAMS": 1}
        with listening(browser(vera), LIST) as first:
            assert next(first) == "here"
            for client in (browser(vera), browser()):
                answer = client.get(LIST, headers=STREAM)

                assert (answer.status_code, answer.content) == (503, b"")
                assert 2 <= int(answer.headers["Retry-After"]) <= 10

    @pytest.mark.only_postgresql
    def test_takes_few_connections_when_very_many_come_at_once(self, site, vera, rows):
        """Each gets an answer, with no error among them; who is refused comes again, not at the same time as others."""
        known, held, most = Client(), _connections(), []
        known.force_login(vera)
        name = settings.SESSION_COOKIE_NAME
        headers = STREAM | {"Cookie": f"{name}={known.cookies[name].value}"}

        async def come() -> list[httpx.Response]:
            limits = httpx.Limits(max_connections=None)
            async with httpx.AsyncClient(base_url=site, headers=headers, limits=limits, timeout=DEADLINE) as client:
                coming = [asyncio.create_task(_opened(client)) for _ in range(150)]
                while not all(one.done() for one in coming):
                    most.append(len(await asyncio.to_thread(_connections) - held))
                return [await one for one in coming]

        answers = asyncio.run(come())

        assert {answer.status_code for answer in answers} <= {200, 503}
        assert any(answer.status_code == 200 for answer in answers)
        assert len({answer.headers["Retry-After"] for answer in answers if answer.status_code == 503}) > 1
        assert max(most) <= 2 * AT_A_TIME  # And what the server still ends.


class TestCanStream:
    def test_shows_in_the_page(self, browser, vera, rows, settings, client):
        assert "data-timeline-told" in browser(vera).get(LIST).text
        settings.TIMELINE = {"LIVE_STREAMS": 0}
        assert "data-timeline-told" not in browser(vera).get(LIST).text

    def test_is_false_under_wsgi(self, vera, rows, client):
        client.force_login(vera)
        page = client.get(LIST, headers=STREAM)

        assert page["Content-Type"].startswith("text/html")
        assert "data-timeline-told" not in page.content.decode()


async def _opened(client):
    """An answer whose stream is left again at once."""
    async with client.stream("GET", LIST) as answer:
        return answer


def _connections():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'"
        )
        return {process for [process] in cursor.fetchall()}


def _falls_to(most, count):
    """The server takes a moment to end what was closed. The watcher may have had its connection before."""
    until = time.monotonic() + 120
    while (there := count()) > most and time.monotonic() < until:
        time.sleep(0.05)
    return there <= most


def _forged(client):
    """What a form of ours would send besides."""
    client.cookies.set("csrftoken", token := "a" * 32)
    return {"X-CSRFToken": token, "Origin": str(client.base_url)}
