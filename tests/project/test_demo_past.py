"""The past with which the demo begins: from the first second there is something to see."""

from __future__ import annotations

from datetime import timedelta

import django
import pytest

from project.accounts.models import User
from project.demo.mailing import sign_of_outage
from project.demo.past import LONG, live_the_past
from project.demo.people import crowd
from timeline.features.maintenance.figures import figures
from timeline.lifecycle import State
from timeline.models import Hold, ScheduledTask

DAY = timedelta(days=1)


@pytest.fixture
def joined(db, settings, tmp_path, now):
    settings.DATA_DIR = tmp_path
    server, options = "project.demo.mailing.MailServer", {"file_path": tmp_path / "mail"}
    if django.VERSION >= (6, 1):
        settings.MAILERS = {"default": {"BACKEND": server, "OPTIONS": options}}
    else:
        settings.EMAIL_BACKEND, settings.EMAIL_FILE_PATH = server, options["file_path"]
    return live_the_past(crowd(24), until=now)


def test_has_failures_charts_and_a_hold(joined, now):
    day = [figures(hours=24, now=now, using="default"), figures(hours=24 * 7, now=now, using="default")]

    for counted in day:
        assert sum(row.completed for row in counted) > 0
        assert sum(row.failed for row in counted) > 0
        assert sum(row.discarded for row in counted) > 0
    assert Hold.objects.open().count() == 1


def test_has_one_that_was_tried_again_with_success(joined):
    tried = ScheduledTask.objects.for_entity(joined[2].user).get(task_key="trial.remind")

    assert (tried.state, tried.attempt > 1) == (State.COMPLETED, True)


def test_leaves_the_first_one_in_the_middle_of_the_trial(joined, now):
    ada = User.objects.get(email="ada@example.com")

    assert now < ada.trial_ends_at < now + 5 * DAY
    assert ScheduledTask.objects.for_entity(ada).get(task_key="trial.remind").state == State.COMPLETED
    assert list(joined[0].ahead(now)) == [(now + 4 * DAY, "call")]


def test_is_over_when_the_demo_begins(joined, now):
    """Nothing of it lies ahead, and what was to be done is done."""
    assert User.objects.filter(signed_up_at__gt=now).count() == 0
    assert User.objects.earliest("signed_up_at").signed_up_at >= now - LONG
    assert not ScheduledTask.objects.due(now - DAY).exists()
    assert not sign_of_outage().exists()
