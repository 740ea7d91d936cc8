"""The pages of bulk actions: whose they are, how far they are, and how one is stopped."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from project.accounts.models import User
from tests.admin import conftest as admin
from tests.admin.conftest import LIST, text_of
from tests.features.bulk_actions.bulk import bulk_action
from timeline.features.bulk_actions.poll import WHY, act_in_bulk, begin_bulk
from timeline.ids import uuid7
from timeline.models import BulkAction, ScheduledTask

about = admin.about  # Fixtures.
browse = admin.browse
clock = admin.clock
operator = admin.operator
person = admin.person

ALL_OF_THEM = reverse("admin:timeline_scheduledtask_bulk")


def page_of(bulk):
    return reverse("admin:timeline_scheduledtask_bulk_action", args=[bulk.pk])


@pytest.fixture
def begun(about, order):
    """Begin one for somebody: ``begun(who, "cancel")``, of two calls."""

    def begin(who, action="cancel", **columns):
        for hours in (1, 2):
            about(order, hours)
        columns.setdefault("filters", {"task": "care.call", "state": ["scheduled"]})
        return begin_bulk(bulk_action(action, asker=who.pk, **columns), ScheduledTask.objects.all(), using="default")

    return begin


@pytest.fixture
def boss(db):
    """The one who is logged in as ``operator``."""
    return lambda: User.objects.get(email="operator@example.com")


class TestBulkView:
    def test_lists_what_was_asked_for_by_whom_and_how_far_it_is(self, operator, begun, boss, order):
        begun(
            boss(),
            filters={
                "task": "care.call",
                "state": ["scheduled"],
                "q": str(order.pk),
                "due_before": "2026-03-05T08:00+00:00",
            },
        )

        text = text_of(operator.get(ALL_OF_THEM))

        for said in (
            "Cancel 2 tasks",
            "all of them",
            ">ada<",
            "running",
            "0 of 2",
            "care.call",
            f"> {order.pk}<",
            "2026-03-05",
        ):
            assert said in text

    def test_is_linked_from_the_list(self, operator):
        assert f'href="{ALL_OF_THEM}"' in text_of(operator.get(LIST))

    def test_says_so_where_there_are_none(self, operator):
        assert "Nobody has acted in bulk" in text_of(operator.get(ALL_OF_THEM))

    def test_shows_others_than_staff_who_may_view_just_their_own(self, browse, person, about, begun, boss, operator):
        ada = person("ada", "cancel_scheduledtask", is_staff=True)
        about(ada, 3, task_key="account.welcome")
        begun(boss())
        mine = bulk_action("cancel", asker=ada.pk, filters={"task": "account.welcome"})
        begin_bulk(mine, ScheduledTask.objects.all(), using="default")

        found = browse(ada).get(ALL_OF_THEM).context["shown"]

        assert [each.bulk.pk for each in found] == [mine.pk]

    def test_is_nothing_to_who_sees_no_tasks(self, browse, person):
        assert browse(person("nobody", is_staff=True)).get(ALL_OF_THEM).status_code == 403

    def test_costs_as_many_queries_for_many(self, operator, begun, boss):
        counts = []
        for number in (1, 10):
            for _ in range(number):
                begun(boss())
            with CaptureQueriesContext(connection) as queries:
                operator.get(ALL_OF_THEM)
            counts.append(len(queries))

        assert counts[0] == counts[1] <= 12


class TestBulkActionView:
    def test_shows_how_far_it_is_and_why_tasks_stay(self, operator, begun, boss, clock):
        bulk = begun(boss(), "move", at=clock.now + timedelta(days=3))
        BulkAction.objects.filter(pk=bulk.pk).update(
            matched=9, done=2, skipped={why: number for number, why in enumerate(WHY, 1)}, spread=timedelta(hours=1)
        )

        text = text_of(operator.get(page_of(bulk)))

        assert "Move 9 tasks" in text
        assert "2 tasks were changed" in text
        assert "17 of 9" in text
        assert "1 task stays as it is: they had changed by then" in text
        assert "5 tasks stay as they are: for another reason" in text
        assert "2026-03-04 09:00" in text
        assert "60 minutes" in text

    @pytest.mark.parametrize(
        ("columns", "said"),
        [
            ({"by_days": 2}, "+ 2 days"),
            ({"by_days": -1, "by_seconds": 7200}, "− 1 day + 2 hours"),
        ],
        ids=["later", "both"],
    )
    def test_says_by_how_much_each_is_moved(self, operator, begun, boss, columns, said):
        assert f"<dt>Moved</dt><dd>{said}</dd>" in text_of(operator.get(page_of(begun(boss(), "move", **columns))))

    def test_stops_it_and_says_who_did(self, operator, begun, boss, clock):
        bulk = begun(boss())

        text = text_of(operator.post(page_of(bulk), follow=True))

        assert "It is stopped. What is done stays." in text
        bulk.refresh_from_db()
        assert (bulk.state, bulk.stopped_by) == ("stopped", "operator@example.com")
        assert "by operator@example.com" in text
        assert act_in_bulk(now=clock.now, using="default") == 0

    def test_says_so_where_it_had_ended(self, operator, begun, boss, clock):
        bulk = begun(boss())
        act_in_bulk(now=clock.now, using="default")

        text = text_of(operator.post(page_of(bulk), follow=True))

        assert "It had ended before you stopped it." in text
        assert "2 of 2" in text
        assert ">Stop<" not in text

    def test_is_stopped_by_nobody_who_may_not_do_the_same(self, browse, person, begun, boss, operator):
        bulk = begun(boss())
        client = browse(person("viewer", "view_scheduledtask", is_staff=True))

        assert ">Stop<" not in text_of(client.get(page_of(bulk)))
        assert client.post(page_of(bulk)).status_code == 403
        bulk.refresh_from_db()
        assert bulk.state == "running"

    def test_says_why_it_stopped_where_nobody_stopped_it(self, operator, begun, boss, clock, person):
        bulk = begun(person("ben", is_staff=True))
        act_in_bulk(now=clock.now, using="default")

        assert "who asked may not do this any more" in text_of(operator.get(page_of(bulk)))

    @pytest.mark.parametrize("method", ["get", "post"])
    def test_answers_alike_for_what_is_foreign_and_what_is_not_there(
        self, browse, person, about, begun, boss, operator, method
    ):
        ada = person("ada", "cancel_scheduledtask", is_staff=True)
        about(ada, 3, task_key="account.welcome")
        bulk, client, asked = begun(boss()), browse(ada), []
        for address in (page_of(bulk), page_of(BulkAction(pk=uuid7()))):
            with CaptureQueriesContext(connection) as queries:
                assert getattr(client, method)(address).status_code == 404
            asked.append(len(queries))

        assert asked[0] == asked[1]
