from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import translation

from timeline.features.holds.release import release
from timeline.features.holds.verbs import park
from timeline.models import Hold, ScheduledTask

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def told(settings):
    settings.TIMELINE = {**settings.TIMELINE, "ALERTS": ["ops@example.com"]}


def alerts():
    return ScheduledTask.objects.filter(task_key="alerts.tell").count()


class TestPark:
    def test_makes_one_hold_and_one_alert(self, now):
        first = park("trial.expire", most=3, within=HOUR, now=now, using="default")
        again = park("trial.expire", most=3, within=HOUR, now=now, using="default")

        assert again == first == Hold.objects.get()
        assert alerts() == 1

    def test_tells_of_each_also_within_an_hour(self, now):
        first = park("trial.expire", most=3, within=HOUR, now=now, using="default")
        release(hold_id=first.pk, actor="ada", reason="it is right", now=now, using="default")

        again = park("trial.expire", most=3, within=HOUR, now=now, using="default")

        assert again.pk != first.pk
        assert alerts() == 2

    def test_keeps_its_reason_in_english_and_tells_it_in_the_language_of_the_reader(self, now):
        with translation.override("de"):
            made = park("trial.expire", most=3, within=2 * HOUR, now=now, using="default")
            said = made.why

        assert made.reason == "more than 3 of it would have started within 2 hours, so its brake has stopped it"
        assert "2 Stunden" in said
