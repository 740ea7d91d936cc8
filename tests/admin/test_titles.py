"""Titles and docstrings of tasks, on each page that names tasks; keys stay beside them."""

from __future__ import annotations

from html import unescape
from urllib.parse import urlencode

import pytest
from django.urls import reverse
from django.utils.translation import gettext_lazy

from tests.admin.conftest import ENTITY, LIST, detail, text_of
from timeline import Timeline, after, task
from timeline.lifecycle import State
from timeline.models import ScheduledTask, ref_of
from timeline.shortcuts import emit
from timeline.testing import only_timelines

WELCOME = reverse("admin:timeline_scheduledtask_timeline", args=["welcome"])
ALL = reverse("admin:timeline_scheduledtask_inventory")
DEAD = reverse("admin:timeline_scheduledtask_dead")
WHAT_IF = reverse("admin:timeline_scheduledtask_what_if")
TITLE = "Greet &lt;them&gt;"
DOC = "Say hello &amp; wait."


class Welcome(Timeline):
    entity = "testapp.Order"
    name = "welcome"
    starts_on = "order.placed"
    exits = {"order.returned": "returned"}
    titles = {"order.placed": "They <bought>", "order.returned": "They sent it back", "returned": "all over"}

    @task(
        after(days=3),
        title="Greet <them>",
        limit=1,  # of limits
    )
    def greet(self, order):
        """Say hello & wait."""

    @task(after(greet, days=7), title=gettext_lazy("Yes"))
    def ask(self, order): ...

    @task(after(days=5))
    def plain(self, order): ...


@pytest.fixture
def run(order):
    with only_timelines(Welcome):
        [run] = emit("order.placed", order).started
        yield run


class TestTitles:
    def test_are_links_of_the_list_with_the_key_beside_them(self, operator, run):
        page = text_of(operator.get(LIST))

        assert f'title="{DOC}">{TITLE}</a> <span class="tl-quiet tl-key">welcome.greet</span>' in page
        assert f"Choose {TITLE} (welcome.greet) of" in page
        assert ">welcome.plain</a>" in page

    def test_are_choices_and_chips_of_the_list(self, operator, run):
        page = text_of(operator.get(LIST, {"task": "welcome.greet"}))

        assert f'<option value="welcome.greet" selected>{TITLE} (welcome.greet)</option>' in page
        assert f"{TITLE} (welcome.greet) <span" in page

    def test_head_the_page_of_a_task_with_its_docstring(self, operator, run):
        page = text_of(operator.get(detail(run.tasks.get(task_key="welcome.greet"))))

        assert f"<h1>{TITLE} <span" in page
        assert f'<span class="tl-code">welcome.greet</span> · {DOC}' in page
        assert f"{TITLE} (welcome.greet) for" in page

    def test_leave_the_page_of_a_task_without_one_as_it_was(self, operator, run):
        page = text_of(operator.get(detail(run.tasks.get(task_key="welcome.plain"))))

        assert "<h1>welcome.plain <span" in page
        assert "tl-key" not in page

    def test_name_lanes_marks_and_rows_of_an_entity(self, operator, run, order):
        ref = ref_of(order)
        page = text_of(operator.get(ENTITY, {"label": ref.label, "id": ref.id}))

        assert f">{TITLE}<title>welcome.greet</title></text>" in page
        assert f"<title>{TITLE} (welcome.greet), 20" in page
        assert f'title="{DOC}">{TITLE}</a>' in page
        assert "<span>Yes</span>" in page  # Foreseen.

    def test_are_said_in_the_language_of_who_looks(self, operator, run, order):
        ref = ref_of(order)
        page = text_of(operator.get(ENTITY, {"label": ref.label, "id": ref.id}, headers={"accept-language": "de"}))

        assert "<span>Ja</span>" in page

    def test_are_on_the_page_of_the_timeline(self, operator, run):
        page = text_of(operator.get(WELCOME))

        assert f'{TITLE} <span class="tl-quiet tl-key">greet</span><br><span class="tl-quiet">{DOC}' in page

    def test_head_groups_of_dead_letters(self, operator, run, about, order):
        about(order, state=State.DISCARDED, task_key="welcome.greet", fingerprint="1" * 16)
        about(order, state=State.RETRYABLE, task_key="welcome.greet", reason_code="error")

        page = text_of(operator.get(DEAD))

        assert f'?group={"1" * 16}" title="{DOC}">{TITLE}</a>' in page
        assert page.count(TITLE) == 3  # Of the cause, its kind, and of those that will try again.

    def test_name_what_would_be(self, operator, run, order, settings):
        settings.TIMELINE = {**settings.TIMELINE, "RECORDED_EVENTS": ["order.seen"]}
        ref = ref_of(order)
        page = text_of(operator.post(f"{WHAT_IF}?label={ref.label}&id={ref.id}", {"event": "order.seen"}))

        assert f">{TITLE}</span>" in page

    def test_are_not_looked_for_where_no_timeline_declares_the_task(self, operator, about, order):
        about(order, task_key="gone.by")

        assert ">gone.by</a>" in text_of(operator.get(LIST))

    def test_are_in_what_health_says_of_discards(self, operator, run, make_task):
        make_task(task_key="welcome.greet", state=State.DISCARDED, error="Boom: no", reason_code="error")

        page = text_of(operator.get(reverse("admin:timeline_scheduledtask_health")))

        assert f"1 task {TITLE} (welcome.greet) failed for good within 24 hours" in page


class TestTitlesOfNames:
    """Of events and exits."""

    def test_are_on_the_page_of_the_timeline_and_in_the_list_of_all(self, operator, run):
        assert "▸ They &lt;bought&gt; (order.placed)" in text_of(operator.get(WELCOME))
        assert "■ They sent it back (order.returned) → all over (returned)" in text_of(operator.get(WELCOME))
        assert "They &lt;bought&gt; (order.placed)" in text_of(operator.get(ALL))

    def test_are_on_the_pages_of_an_entity_and_of_its_tasks(self, operator, run, order):
        emit("order.returned", order)

        page = text_of(operator.get(ENTITY, ref_of(order)._asdict()))

        assert 'They &lt;bought&gt;</span> <span class="tl-quiet tl-key">order.placed</span>' in page
        assert '<td class="tl-long">all over (returned)</td>' in page
        for task_page in (operator.get(detail(each)) for each in ScheduledTask.objects.all()):
            assert "exit “all over (returned)”" in unescape(text_of(task_page))

    def test_are_beside_what_may_be_tried(self, operator, run, order):
        page = text_of(operator.get(f"{WHAT_IF}?{urlencode(ref_of(order)._asdict())}"))

        assert '<option value="order.returned" label="They sent it back">' in page
