"""Several admin sites, and several databases."""

from __future__ import annotations

import pytest

from tests.admin.conftest import text_of
from timeline.models import ScheduledTask

pytestmark = pytest.mark.django_db(databases=["default", "other"])


@pytest.fixture(autouse=True)
def _urls(settings):
    settings.ROOT_URLCONF = "tests.admin.second_site"


class TestASecondSite:
    def test_shows_and_changes_the_tasks_of_its_own_database(self, operator, about, make_task, order, now):
        here = about(order)
        there = ScheduledTask(
            task_key="care.call",
            state="scheduled",
            nominal_at=now,
            scheduled_at=now,
            created_at=now,
            max_attempts=1,
            entity_label="testapp.order",
            entity_id="17",
        )
        there.save(using="other")

        text = text_of(operator.get("/second/timeline/scheduledtask/"))
        page = text_of(operator.get(f"/second/timeline/scheduledtask/{there.pk}/change/"))
        given = {"action": "cancel", "task": there.pk, "confirmed": 1, "reason": "they asked"}
        done = operator.post("/second/timeline/scheduledtask/act/", given)

        assert f"/second/timeline/scheduledtask/{there.pk}/change/" in text
        assert str(here.pk) not in text
        assert 'action="/second/timeline/scheduledtask/act/"' in page
        assert '"/admin/' not in page
        assert done.url == "/second/timeline/scheduledtask/"
        assert ScheduledTask.objects.using("other").get().state == "cancelled"


class TestASiteWithoutThesePages:
    def test_has_no_button(self, person, browse, order):
        client = browse(person("admin", is_staff=True, is_superuser=True))

        answer = client.get(f"/third/testapp/order/{order.pk}/change/")

        assert answer.status_code == 200
        assert "timelinelink" not in text_of(answer)
