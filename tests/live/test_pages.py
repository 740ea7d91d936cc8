"""Pages of a host: what an open one is told, and what it costs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.http import Http404, HttpResponse
from django.template import Context, Template
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from tests.testapp.models import Order
from timeline.live import live_page, versions
from timeline.shortcuts import cancel

PART = Template("{% load timeline_live %}{% live %}<b>{{ words }}</b>{% endlive %}")


@pytest.fixture(autouse=True)
def _no_time_passes(monkeypatch):
    monkeypatch.setattr(versions.time, "time", lambda: 1_000_000.0)


def order_of(_request, pk):
    return Order(pk=pk) if pk < 1000 else missing()


def missing():
    raise Http404


@live_page(order_of)
def page(request, pk):
    return HttpResponse("what there is")


def ask(pk, seen="", **more):
    return page(RequestFactory().get("/", headers={"X-Timeline-Seen": seen}, **more), pk=pk)


@pytest.mark.django_db
class TestLivePage:
    def test_is_for_users_whose_model_knows_no_permissions_too(self, make_task):
        """Django asks no more of a model of users than ``AbstractBaseUser`` has."""
        make_task(entity_label="testapp.order", entity_id="1")
        request = RequestFactory().get("/", headers={"X-Timeline-Seen": ""})
        request.user = SimpleNamespace(pk=1, is_active=True, is_authenticated=True)

        assert page(request, pk=1).content == b"what there is"

    def test_answers_with_the_page_as_soon_as_something_of_its_entity_has_changed(self, make_task):
        row, other = (make_task(entity_label="testapp.order", entity_id=str(pk)) for pk in (1, 2))
        first = ask(1)
        with CaptureQueriesContext(connection) as asked:
            assert ask(1, first["X-Timeline-Version"]).status_code == 204
        assert len(asked) == 1

        cancel(other, reason="so")
        assert ask(1, first["X-Timeline-Version"]).status_code == 204
        cancel(row, reason="so")
        changed = ask(1, first["X-Timeline-Version"])
        assert (changed.status_code, changed.content) == (200, b"what there is")

    def test_without_a_question_is_the_view_alone(self, django_assert_num_queries):
        with django_assert_num_queries(0):
            answer = page(RequestFactory().get("/"), pk=1)

        assert "X-Timeline-Version" not in answer

    @pytest.mark.parametrize("seen", ["", "x", "a.b.c.d", "ä.b.c.d", "." * 3, "a.nobody.100000." + "0" * 64])
    def test_takes_no_version_that_it_has_not_given(self, seen):
        assert ask(1, seen).status_code == 200

    def test_passes_on_what_the_entity_is_refused_with(self):
        with pytest.raises(Http404):
            ask(1000)


@pytest.mark.django_db
class TestWhoIsNotLetIn:
    """How long an answer takes must not tell what is there: whoever the view refuses, no row is read for."""

    @pytest.fixture
    def refusing(self):
        """Ask a view that lets in Ada, to one address; what it answers, and how many statements that took."""
        let_in = {("Ada", "/")}

        @live_page(order_of)
        def view(request, pk):
            return HttpResponse(status=200 if (request.user.pk, request.path) in let_in else 403)

        def asked(name, pk, seen, path="/"):
            request = RequestFactory().get(path, headers={"X-Timeline-Seen": seen})
            request.user = SimpleNamespace(pk=name, is_active=True, is_authenticated=True)
            with CaptureQueriesContext(connection) as found:
                answer = view(request, pk=pk)
            return answer, len(found)

        asked.let_in = let_in
        return asked

    @pytest.mark.parametrize("whose", ["", "x", "a.b.1.d"])
    def test_is_refused_before_a_row_is_read(self, refusing, make_task, whose):
        make_task(entity_label="testapp.order", entity_id="1")

        for pk in (1, 2):
            answer, queries = refusing("Eve", pk, whose)

            assert (answer.status_code, queries) == (403, 0)

    def test_is_not_let_in_by_what_was_said_to_somebody_else_elsewhere_or_long_ago(self, refusing, monkeypatch):
        version = refusing("Ada", 1, "")[0]["X-Timeline-Version"]
        assert refusing("Ada", 1, version)[1] == 1

        assert refusing("Eve", 1, version)[1] == 0
        assert refusing("Ada", 1, version, path="/other/")[1] == 0
        refusing.let_in.clear()
        monkeypatch.setattr(versions.time, "time", lambda: 1_000_000.0 + 3600)
        assert refusing("Ada", 1, version)[1] == 0


class TestLive:
    def test_keeps_a_part_up_to_date_and_escapes_what_is_in_it(self):
        told = PART.render(Context({"words": "<i>", "request": RequestFactory().get("/?a&c")}))

        assert '<div data-timeline-refresh="/?a&amp;c" data-timeline-part><b>&lt;i&gt;</b></div>' in told
        assert "timeline/refresh.js" in told

    def test_has_its_words_and_its_script_once_for_several_parts(self):
        parts = Template("{% include part %}{% include part %}")
        for _time in range(2):
            told = parts.render(Context({"part": PART, "words": "so", "request": RequestFactory().get("/")}))

            assert (told.count("data-timeline-refresh="), told.count("<script"), told.count("<button")) == (2, 1, 1)

    def test_leaves_an_answer_to_a_form_as_it_is(self):
        assert PART.render(Context({"words": "so", "request": RequestFactory().post("/")})) == "<b>so</b>"

    def test_says_what_is_missing_without_a_request(self):
        with pytest.raises(ImproperlyConfigured, match=r"context_processors\.request"):
            PART.render(Context({}))
