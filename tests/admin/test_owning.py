"""The page of a customer shows what belongs to them, to those who may see it."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.admin.conftest import ENTITY, Account, Care, text_of
from tests.testapp.models import Plan, Seat
from timeline import Timeline, after, task
from timeline.admin.entities import MAX_LANES
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.shortcuts import start
from timeline.testing import only_timelines

VIEW_SEATS = "view_seat"


class Seating(Timeline):
    """About seats, which are their users'."""

    entity = "testapp.Seat"
    owner = "plan.user"

    @task(after(days=1))
    def free(self, seat): ...

    @task(after(free, days=1))
    def sweep(self, seat): ...


class Accounting(Timeline):
    """About the same seats, and nobody's but staff's."""

    entity = "testapp.Seat"

    @task(after(days=1))
    def bill(self, seat): ...


@pytest.fixture(autouse=True)
def _also(clock):
    with only_timelines(Care, Account, Seating, Accounting):
        yield


@pytest.fixture
def ada(person):
    return person("ada")


@pytest.fixture
def seats_of():
    """Give somebody seats, whose timeline starts: ``seats_of(ada, 3)``."""

    def make(owner, number=1):
        plan = Plan.objects.create(user=owner)
        seats = [Seat.objects.create(plan=plan) for _ in range(number)]
        for seat in seats:
            start("seating", seat)
        return seats

    return make


def page(client, entity):
    return client.get(ENTITY, {"label": "accounts.user", "id": entity.pk})


def groups(response):
    """What the page says belongs to the user: name → keys ahead, keys past."""
    return {
        group.entity.name: ([item.key for item in group.ahead], [item.key for item in group.past])
        for group in response.context["groups"]
    }


class TestBelongings:
    def test_are_on_the_page_by_entity_with_what_is_foreseen(self, operator_of_seats, ada, seats_of):
        seats = seats_of(ada, 3)

        response = page(operator_of_seats, ada)

        assert groups(response) == {str(seat): (["seating.free", "seating.sweep"], []) for seat in seats}
        text = text_of(response)
        assert "Belongs to ada@example.com" in text
        assert "Nothing is ahead." not in text

    def test_have_what_has_ended_behind_what_is_ahead(self, operator_of_seats, ada, seats_of, about):
        [seat] = seats_of(ada)
        about(seat, -5, task_key="seating.free", state=State.COMPLETED)

        assert groups(page(operator_of_seats, ada)) == {
            str(seat): (["seating.free", "seating.sweep"], ["seating.free"])
        }
        assert "1 task has ended" in text_of(page(operator_of_seats, ada))

    def test_come_the_soonest_first(self, operator_of_seats, ada, seats_of, clock):
        [late] = seats_of(ada)
        ScheduledTask.objects.update(scheduled_at=clock.now.replace(day=20))
        [soon] = seats_of(ada)

        assert list(groups(page(operator_of_seats, ada))) == [str(soon), str(late)]

    def test_lead_to_the_page_of_each(self, operator_of_seats, ada, seats_of):
        [seat] = seats_of(ada)

        where = page(operator_of_seats, ada).context["groups"][0].entity.where

        assert operator_of_seats.get(where).context["entity"].name == str(seat)

    def test_are_not_those_of_others_nor_of_timelines_that_have_no_owner(
        self, operator_of_seats, ada, person, seats_of
    ):
        [seat] = seats_of(ada)
        start("accounting", seat)
        seats_of(person("ben"))

        assert groups(page(operator_of_seats, ada)) == {str(seat): (["seating.free", "seating.sweep"], [])}

    def test_leave_what_is_about_the_user_where_it_was(self, operator_of_seats, ada, seats_of, about):
        seats_of(ada)
        about(ada, task_key="account.welcome")

        response = page(operator_of_seats, ada)

        assert [item.key for item in response.context["ahead"]] == ["account.welcome"]
        assert len(response.context["groups"]) == 1

    def test_are_there_where_no_timeline_is_about_users(self, operator_of_seats, ada, seats_of):
        with only_timelines(Seating):
            [seat] = seats_of(ada)

            assert list(groups(page(operator_of_seats, ada))) == [str(seat)]
            button = text_of(operator_of_seats.get(reverse("admin:accounts_user_change", args=[ada.pk])))
        assert "timelinelink" in button

    def test_cost_as_many_queries_for_ten_as_for_a_hundred(self, operator_of_seats, person, seats_of):
        counts = []
        for number in (10, 100):
            owner = person(f"owner{number}")
            seats_of(owner, number)
            page(operator_of_seats, owner)
            with CaptureQueriesContext(connection) as queries:
                assert len(groups(page(operator_of_seats, owner))) == number
            counts.append(len(queries))

        assert counts[0] == counts[1] <= 12  # Session and user of the request, and what they may, are four of them.

    def test_say_that_there_are_more(self, operator_of_seats, ada, seats_of, monkeypatch):
        monkeypatch.setattr("timeline.admin.entities.MAX_SHOWN", 2)
        seats_of(ada, 3)

        response = page(operator_of_seats, ada)

        assert len(response.context["groups"]) == 2
        assert "nearest on each side of now are shown" in text_of(response)


class TestThePicture:
    def test_has_lanes_of_what_belongs_to_them_behind_their_own(self, operator_of_seats, ada, seats_of, about):
        about(ada, 300, task_key="account.welcome")
        first, second = seats_of(ada, 2)

        lanes = [lane.key for lane in page(operator_of_seats, ada).context["drawing"].lanes]

        assert lanes[0] == "account.welcome"
        assert {f"seat {first.pk}: seating.free", f"seat {second.pk}: seating.free"} < {*lanes[1:]}

    def test_has_so_many_lanes_and_no_more(self, operator_of_seats, ada, seats_of):
        seats_of(ada, MAX_LANES)

        assert len(page(operator_of_seats, ada).context["drawing"].lanes) == MAX_LANES


class TestWhoSees:
    def test_nothing_without_the_right_to_view_the_model(self, browse, person, ada, seats_of):
        [seat] = seats_of(ada)
        without = browse(person("without", "view_scheduledtask", "view_user"))
        other = browse(person("other", "view_scheduledtask", "view_plan"))

        for client in (without, other):
            response = page(client, ada)
            assert response.status_code == 200
            assert groups(response) == {}
            assert str(seat.pk) not in text_of(response)

    @pytest.mark.parametrize("right", ["view_seat", "change_seat"])
    def test_all_with_it(self, browse, person, ada, seats_of, right):
        [seat] = seats_of(ada)

        assert list(groups(page(browse(person("with", "view_scheduledtask", right)), ada))) == [str(seat)]

    def test_no_page_without_the_right_to_view_tasks(self, browse, person, ada, seats_of):
        seats_of(ada)
        client = browse(person("staff", VIEW_SEATS, "view_user"))

        answer, absent = page(client, ada), client.get(ENTITY, {"label": "accounts.user", "id": 999999})

        assert (answer.status_code, re.sub(r"\d", "", answer.content.decode())) == (
            404,
            re.sub(r"\d", "", absent.content.decode()),
        )

    def test_staff_see_what_is_their_own(self, browse, person, seats_of):
        staff = person("staff", is_staff=True)
        [seat] = seats_of(staff)

        assert list(groups(page(browse(staff), staff))) == [str(seat)]

    def test_errors_are_as_hidden_as_elsewhere(self, browse, person, ada, seats_of):
        seats_of(ada)
        ScheduledTask.objects.update(reason_code="error", reason="secret of ada")

        assert "secret of ada" not in text_of(page(browse(person("v", "view_scheduledtask", VIEW_SEATS)), ada))
        with_it = browse(person("w", "view_scheduledtask", VIEW_SEATS, "view_payload"))
        assert "secret of ada" in text_of(page(with_it, ada))


@pytest.fixture
def operator_of_seats(person, browse):
    return browse(person("operator", "view_scheduledtask", "view_payload", VIEW_SEATS, "view_user", "change_user"))
