"""Queries of a person's timeline: twelve at most, session and user of the request among them, however much is theirs."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.testapp.models import Plan, Seat
from timeline import policy
from timeline.models import ref_of
from timeline.policy import TimelinePolicy
from timeline.shortcuts import start

MOST = 12
FEW = 3


class OneByOne(TimelinePolicy):
    """Asks of each timeline by itself, as a host's policy may."""

    def sees_timeline(self, user, timeline, ref, *, using):
        return super().sees_timeline(user, timeline, ref, using=using)


@pytest.fixture
def owns(ada, monkeypatch, settings):
    """Let more be Ada's than is named by its keys."""
    monkeypatch.setattr(policy, "FEW", FEW)
    settings.TIMELINE = {**settings.TIMELINE, "POLICY": f"{__name__}.OneByOne"}

    def made(count):
        for _number in range(count):
            start("seating", Seat.objects.create(plan=Plan.objects.create(user=ada)))

    return made


def asked(user, path):
    client = Client()
    client.force_login(user)
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 200
    return len(queries), answer.json()


class TestWhoseOwnItIs:
    @pytest.mark.parametrize("path", ["me/tasks/", "users/{id}/tasks/"])
    def test_asks_as_much_for_twice_as_many(self, ada, owns, path):
        ada.is_staff = True
        ada.save(update_fields=["is_staff"])
        owns(FEW + 2)
        path = path.format(id=ada.pk)

        before, found = asked(ada, path)
        owns(FEW + 2)
        after, twice = asked(ada, path)

        assert before == after <= MOST
        assert [len(one["foreseen"]["results"]) for one in (found, twice)] == [FEW + 2, 2 * (FEW + 2)]

    def test_is_not_asked_for_while_the_api_is_described(self, ada, owns):
        """What views would show is asked for by none of them."""
        owns(FEW + 2)

        assert asked(ada, "schema/")[0] <= 3


class TestStaff:
    def test_ask_no_more_for_a_user_or_an_entity(self, ada, staff, owns):
        owns(FEW + 2)
        seat = ref_of(Seat.objects.first())

        for path in (f"users/{ada.pk}/tasks/", f"entities/{seat.label}/{seat.id}/tasks/"):
            count, found = asked(staff, path)

            assert count <= MOST, path
            assert found["upcoming"]["results"], path
