"""The page of health, and what each page says when nobody polls."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from tests.admin.conftest import ALL, LIST, text_of
from timeline.lifecycle import State
from timeline.models import Hold, Identity, ScheduledTask, Sign

HEALTH = reverse("admin:timeline_scheduledtask_health")
SILENCE = "Nobody polls this database"


def polled(ago):
    """Somebody polled so long ago; the database is this site's since yesterday."""
    at = timezone.now()
    Identity.objects.update_or_create(
        pk=1, defaults={"site": "", "polled_at": at - ago, "adopted_at": at - timedelta(days=1)}
    )


@pytest.fixture
def viewer(person, browse):
    return browse(person("vera", *ALL))


@pytest.fixture(autouse=True)
def _polled(db):
    polled(timedelta())


class TestHealth:
    def test_says_that_all_is_well(self, viewer):
        page = text_of(viewer.get(HEALTH))

        assert "What is due is run, and nothing waits for you." in page
        assert "No worker has given a sign lately." in page
        assert HEALTH in text_of(viewer.get(LIST))

    def test_says_when_it_was_polled_and_by_which_clock(self, viewer, monkeypatch):
        story = text_of(viewer.get(HEALTH))
        monkeypatch.setattr("timeline.admin.health.is_told", lambda: False)
        plain = text_of(viewer.get(HEALTH))

        at = r"Last polled: \d{4}-\d\d-\d\d \d\d:\d\d"  # As all pages write a time.
        assert re.search(f"{at} by the clock of the machine; [^<]* where it is 2026-03-01 09:00<", story)
        assert re.search(f"{at}<", plain)

    def test_says_what_is_wrong_and_where_it_is_mended(self, viewer, make_task, now, clock):
        clock.set(now)
        make_task(task_key="trial.remind", state=State.DISCARDED, error="<Boom>: no", reason_code="error")
        make_task(task_key="gone.away", state=State.SCHEDULED, occurrence="1")

        page = text_of(viewer.get(HEALTH))

        assert "1 task trial.remind failed for good within 24 hours (&lt;Boom&gt;)" in page
        assert reverse("admin:timeline_scheduledtask_dead") in page
        assert "Without a definition: gone.away (1)." in page
        assert f"{LIST}?task=gone.away" in page

    def test_lists_workers_with_their_last_sign(self, viewer, make_task):
        Sign.objects.create(worker="w-1@<host>", seen_at=timezone.now() - timedelta(seconds=3))
        Sign.objects.create(worker="w-2", seen_at=timezone.now() - timedelta(minutes=5))
        for number in "ab":
            make_task(state=State.ACTIVE, worker="w-1@<host>", occurrence=number)

        page = text_of(viewer.get(HEALTH))

        assert "w-1@&lt;host&gt;" in page
        assert page.count(">missed<") == 1
        assert "5 minutes ago" in page.replace("\xa0", " ")

    def test_leads_from_what_was_discarded_lately_to_these_alone(self, viewer):
        assert f'<a href="{reverse("admin:timeline_scheduledtask_dead")}?since=day">0</a>' in text_of(
            viewer.get(HEALTH)
        )

    def test_asks_no_more_where_there_is_more(self, viewer, make_task):
        def statements():
            with CaptureQueriesContext(connection) as queries:
                viewer.get(HEALTH)
            return len(queries)

        make_task(state=State.ACTIVE, worker="w-0", occurrence="first")
        few = statements()
        for number in range(20):
            make_task(state=State.ACTIVE, worker=f"w-{number}", occurrence=f"{number}")
            Sign.objects.create(worker=f"w-{number}", seen_at=timezone.now())

        assert statements() == few

    def test_asks_little_even_where_all_is_wrong(self, viewer, make_task, now, clock, django_assert_max_num_queries):
        """Four statements of these say who asks, and what they may do."""
        clock.set(now)
        make_task(task_key="care.greet", state=State.DISCARDED, error="Boom: no", reason_code="error")
        make_task(task_key="gone.away", state=State.SCHEDULED, occurrence="1")
        Hold.objects.create(scope="entity", entity_label="a.b", entity_id="7", reason="x", created_at=now)
        viewer.get(HEALTH)

        with django_assert_max_num_queries(12):  # With session and user of the request, and what they may.
            assert "Without a definition: gone.away (1)." in text_of(viewer.get(HEALTH))

    def test_is_for_who_may_see_all_tasks(self, person, browse):
        assert browse(person("mia", "view_payload")).get(HEALTH).status_code == 403


class TestSilence:
    @pytest.mark.parametrize(("ago", "is_said"), [(timedelta(minutes=1), False), (timedelta(minutes=3), True)])
    def test_is_told_on_each_page(self, viewer, ago, is_said):
        polled(ago)

        for address in (LIST, reverse("admin:timeline_scheduledtask_find")):
            assert (SILENCE in text_of(viewer.get(address))) is is_said

    def test_is_told_where_nobody_ever_polled(self, viewer):
        Identity.objects.update(polled_at=None)

        assert SILENCE in text_of(viewer.get(LIST))
        assert not ScheduledTask.objects.exists()
