"""Plans: a list and its strip read about what they show, whoever looks, and by whatever it is narrowed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.db.models import Q
from django.test import Client

from project.accounts.models import User
from tests.postgresql.owned import ANALYZE, NOW, OTHERS, reads_of
from tests.testapp.models import Plan, Seat
from timeline.lifecycle import State
from timeline.policy import TimelinePolicy

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("many_owned", "owners_clock")]

LIST = "/admin/timeline/scheduledtask/"
TASKS = {"timeline_scheduledtask"}
# So many rows of the two timelines are due within the days of a strip, on one side of now or on both.
IN_A_MONTH = 2_500


class SeatsOnly(TimelinePolicy):
    """Shows those who may view tasks one timeline, unless they are superusers."""

    def visible(self, tasks, user):
        tasks = super().visible(tasks, user)
        return (
            tasks if user.is_superuser else tasks.filter(Q(task_key__startswith="seating.") | Q(task_key="gone.rare"))
        )


@pytest.fixture(scope="module", autouse=True)
def _others(many_owned):
    """What others have."""
    with connection.cursor() as cursor:
        cursor.execute(OTHERS, {"now": NOW - timedelta(days=2)})
        cursor.execute(ANALYZE)
    connection.check_constraints()  # As ``around_tests`` does.


@pytest.fixture
def as_(now, settings):
    """Give the client of somebody who has some rights."""

    def made(user, *rights):
        user.is_staff = True
        user.save(update_fields=["is_staff", "is_superuser"])
        user.user_permissions.set(Permission.objects.filter(codename__in=rights))
        client = Client()
        client.force_login(user)
        return client

    return made


@pytest.fixture
def somebody(now):
    """Who has nothing yet."""
    return User.objects.create(email="eva@example.com", signed_up_at=now, trial_ends_at=now)


def most_read(client, where):
    """Rows that the dearest statement of a page reads."""
    shown = []
    reads = reads_of(lambda: shown.append(client.get(LIST + where)), TASKS)
    assert shown[0].status_code == 200
    return max((read for read, _sql in reads), default=0), shown[0].context


OF_MANY = [
    "",
    "?state=scheduled",
    "?state=completed",
    "?state=cancelled",
    "?state=all",
    "?state=ended",
    "?timeline=renewing",
]


class TestWhoOwnsVeryMany:
    def test_reads_only_what_is_of_their_timelines(self, as_, owner):
        client = as_(owner)

        for where in (*OF_MANY, "?state=completed&ended=day"):
            read, context = most_read(client, where)

            assert read <= IN_A_MONTH, where
            assert context["shown"] == (0 if "cancelled" in where else context["shown"]) <= 50, where


class TestWhoOwnsFew:
    def test_reads_only_what_is_theirs(self, as_, somebody):
        """Not what others have of the same kinds: it is looked for by what they own."""
        plans = Plan.objects.filter(pk__in=list(Plan.objects.values_list("pk", flat=True)[:5]))
        plans.update(user=somebody)
        assert Seat.objects.filter(plan__in=plans).count() == 5
        client = as_(somebody)

        for where in OF_MANY:
            read, context = most_read(client, where)

            assert read <= 100, where
            assert context["shown"] == (0 if "cancelled" in where else context["shown"]) <= 20, where

        for rights in ((), ("view_scheduledtask", "view_plan", "view_seat")):
            read, context = most_read(as_(somebody, *rights), f"entity/?label=accounts.user&id={somebody.pk}")

            assert read <= 100, rights
            assert len(context["groups"]) == 10, rights


class TestWhoSeesOneTimeline:
    def test_reads_nothing_of_the_others(self, as_, somebody, settings):
        settings.TIMELINE = {**settings.TIMELINE, "POLICY": f"{__name__}.SeatsOnly"}
        client = as_(somebody, "view_scheduledtask")

        for where in OF_MANY:
            read, _context = most_read(client, where)

            assert read <= IN_A_MONTH, where


class TestWhoSeesAll:
    def test_reads_only_what_has_the_reason_or_has_ended_lately(self, as_, somebody, make_task):
        for state, reason in ((State.CANCELLED, "guard"), (State.COMPLETED, "error"), (State.SCHEDULED, "hold")):
            for _number in range(3):
                make_task(task_key="other.task", state=state, reason_code=reason)
        with connection.cursor() as cursor:
            cursor.execute(ANALYZE)
        somebody.is_superuser = True
        client = as_(somebody)

        for where in ("?state=all&reason=guard", "?state=ended&reason=error", "?reason=hold"):
            read, context = most_read(client, where)

            assert context["shown"] == 3, where
            assert read <= 50, where

        read, context = most_read(client, "?state=completed&ended=day")

        assert 5 <= context["shown"] <= 50
        assert read <= 200
