"""What the admin answers in the reader's language."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.utils import translation

from tests.admin.conftest import ACT, ENTITY, LIST, detail, text_of
from timeline.lifecycle import State
from timeline.models import ScheduledTask, TimelineRun
from timeline.shortcuts import cancel, emit


@pytest.fixture
def german(operator, settings):
    """The browser of somebody who reads German and may do everything."""
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.middleware.locale.LocaleMiddleware"]
    operator.defaults["HTTP_ACCEPT_LANGUAGE"] = "de"
    yield operator
    translation.deactivate()


def act(client, action, row):
    given = {"action": action, "task": row.pk, "confirmed": "1", "reason": "they asked"}
    return unescape(text_of(client.post(ACT, given, follow=True)))


class TestMessages:
    def test_of_what_was_done_are_in_german(self, german, about, order):
        assert "1 Aufgabe wurde abgesagt." in act(german, "cancel", about(order))

    def test_of_errors_are_in_german(self, german, about, order):
        first = about(order, state=State.COMPLETED)
        about(order, occurrence=first.occurrence, revision=2)

        said = act(german, "redrive", first)

        assert f"task: {first.pk} ist schon offen. Verschieben Sie sie, führen Sie sie aus oder" in said
        assert ScheduledTask.objects.count() == 2


class TestSpans:
    @pytest.mark.parametrize(
        ("hours", "said"),
        [(24 * 3, "noch 3 Tage"), (-24 * 3, "fällig, 3 Tage her"), (0.01, "in weniger als einer Minute")],
    )
    def test_stand_in_the_right_case(self, german, about, order, hours, said):
        """Django's spans are in the nominative: after “in” and “vor” they are wrong."""
        about(order, hours)

        assert said in text_of(german.get(LIST)).replace("\xa0", " ")


class TestReasons:
    @pytest.fixture
    def gone(self, order, now):
        """A task of an order that was deleted: its run says so, and so does its log."""
        emit("order.placed", order)
        row = ScheduledTask.objects.get()
        order.delete()
        row.refresh_from_db()
        return row

    def test_of_the_system_are_in_german_in_story_log_and_run(self, german, gone):
        text = text_of(german.get(detail(gone)))

        assert gone.reason == "the entity was deleted"
        assert text.count("das Objekt wurde gelöscht") >= 3
        assert "the entity was deleted" not in text

    def test_of_the_system_are_in_german_on_the_page_of_the_entity(self, german, gone):
        text = text_of(german.get(ENTITY, {"label": gone.entity_label, "id": gone.entity_id}))

        assert TimelineRun.objects.get().end_reason == "the entity was deleted"
        assert "das Objekt wurde gelöscht" in text
        assert "the entity was deleted" not in text

    def test_of_people_stay_as_they_were_written(self, german, about, order):
        row = about(order)
        cancel(row, reason="would have run")

        assert "would have run" in text_of(german.get(detail(row)))


class TestButtons:
    def test_have_a_blank_before_the_dots_in_german(self, german, about, order):
        page = unescape(text_of(german.get(detail(about(order)))))

        assert " …</button>" in page
        assert not re.search(r"\S…</button>", page)
