"""Plans: who owns very many entities is answered without reading them all; what is theirs is looked up as rows are read."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client

from project.accounts.models import User
from tests.postgresql.owned import ANALYZE, MANY, OTHERS, reads_of
from tests.testapp.models import Plan, Seat
from timeline.policy import FEW

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("owners_clock")]

LISTS = [
    "tasks/",
    "tasks/?ordering=-scheduled_at",
    "tasks/?state=scheduled",
    "tasks/?state=completed&limit=100",
    "tasks/?state=scheduled&state=completed",
    "tasks/?timeline=seating",
    "tasks/?task=renewing.renew",
    "me/tasks/",
]


@pytest.fixture
def page(owner, now):
    """Open the page of the owner, as somebody who may see all that is shown there; give the groups on it."""
    columns = {"signed_up_at": now, "trial_ends_at": now, "is_staff": True}
    staff = User.objects.create(email="eva@example.com", **columns)
    rights = ["view_scheduledtask", "view_plan", "view_seat"]
    staff.user_permissions.set(Permission.objects.filter(codename__in=rights))
    client = Client()
    client.force_login(staff)
    asked = {"label": "accounts.user", "id": owner.pk}
    return lambda: client.get("/admin/timeline/scheduledtask/entity/", asked).context["groups"]


@pytest.mark.usefixtures("many_owned")
class TestManyOwned:
    def test_are_not_all_read_for_a_list(self, owner):
        """Beyond the first thousand keys, which tell that there are many, a page costs about what it shows."""
        client = Client()
        client.force_login(owner)

        for path in LISTS:
            reads = reads_of(lambda path=path: client.get(f"/api/v1/{path}"))

            assert len(reads) >= 3, path
            assert sum(read for read, _sql in reads) > 2 * FEW, path
            for read, sql in reads:
                assert read <= 2 * (FEW + 1), f"{path}: {read} by {sql}"

    def test_are_not_all_read_for_the_owners_page(self, page):
        reads = reads_of(page)

        assert len(page()) >= 100
        for read, sql in reads:
            assert read <= 2 * (FEW + 1), f"{read} by {sql}"

    def test_have_nothing_of_others_read_for_the_owners_page(self, page, now):
        """Not what others have in a state in which nothing is theirs."""
        with connection.cursor() as cursor:
            cursor.execute(OTHERS, {"now": now})
            cursor.execute(ANALYZE)

        reads = reads_of(page, {"timeline_scheduledtask"})

        assert len(reads) == 2
        for read, sql in reads:
            assert read <= 2 * (FEW + 1), f"{read} by {sql}"

    def test_are_told_apart_from_those_that_are(self, owner):
        """A statement that reads them all shows as such: these tests can fail."""
        [(read, _sql)] = reads_of(lambda: list(Plan.objects.filter(user=owner)))
        [(counted, _sql)] = reads_of(Seat.objects.count)

        assert read >= MANY
        assert counted == MANY + MANY // 2
