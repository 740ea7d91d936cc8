"""Models whose manager raises outside of a scope: timelines read by another one, and handlers open a scope of their own."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import QuerySet
from django_scopes import scope
from django_scopes.exceptions import ScopeError

from tests.admin.conftest import LIST, detail
from tests.testapp.models import Seller, Ticket
from timeline import Timeline, after, at, before, created, task
from timeline.features.sweep.verbs import sweep
from timeline.lifecycle import ReasonCode, State
from timeline.models import ScheduledTask, TimelineRun
from timeline.shortcuts import emit, enroll, explain, reconcile
from timeline.testing import expect, only_timelines


def is_alone(ticket: Ticket) -> bool:
    """A guard that asks the database."""
    with scope(shop=ticket.shop):
        return Ticket.objects.count() == 1


class Admission(Timeline):
    """Handlers with a scope, and without."""

    entity = "testapp.Ticket"
    starts_on = "ticket.sold"

    @task(before("ends_at", days=2), only_if=is_alone)
    def remind(self, ticket: Ticket) -> int:
        with scope(shop=ticket.shop):
            return Ticket.objects.count()

    @task(at("ends_at"))
    def forget(self, ticket: Ticket) -> int:
        return Ticket.objects.count()


@pytest.fixture
def ticket(clock):
    """One of two shops' tickets; nobody has opened a scope."""
    with only_timelines(Admission):
        Ticket.objects.create(shop="south")
        made = Ticket.objects.create(shop="north", ends_at=clock.now + timedelta(days=5))
        with pytest.raises(ScopeError):
            Ticket.objects.count()
        yield made


class Selling(Timeline):
    """About what a base manager may hide."""

    entity = "testapp.Seller"
    starts_on = "seller.came"

    @task(after(days=1))
    def call(self, seller: Seller) -> None: ...


class TestABaseManagerThatHides:
    def test_has_what_it_hides_taken_for_gone(self, clock):
        with only_timelines(Selling):
            seller = Seller.objects.create()
            emit("seller.came", seller)
            QuerySet(Seller).update(hidden=True)

            clock.advance(days=2)

        assert ScheduledTask.objects.get().reason_code == ReasonCode.ENTITY_GONE

    def test_lets_a_row_that_it_hides_be_made(self, clock):
        class Greeting(Timeline):
            entity = "testapp.Seller"
            starts_on = created()

            @task(after(days=1))
            def greet(self, seller: Seller) -> None: ...

        with only_timelines(Greeting):
            Seller.objects.create(hidden=True)
            Seller.objects.create()

        assert TimelineRun.objects.get().entity_id == str(Seller.objects.get().pk)


@pytest.mark.timeline(raises=False)
class TestAModelWithAScope:
    def test_runs_what_opens_its_own(self, ticket, clock):
        emit("ticket.sold", ticket)

        [reminded] = clock.advance(days=3)

        assert reminded.result == 1

    def test_fails_what_does_not(self, ticket, clock):
        emit("ticket.sold", ticket)

        clock.advance(days=5)

        forgot = ScheduledTask.objects.get(task_key="admission.forget")
        assert forgot.state == State.RETRYABLE
        assert "ScopeError" in explain(forgot)

    def test_has_its_rows_follow_without_one(self, ticket, clock):
        emit("ticket.sold", ticket)

        ticket.ends_at += timedelta(days=3)
        ticket.save()
        reconcile(ticket)
        sweep(now=clock.now, using="default")

        expect(ticket).scheduled("forget", at=ticket.ends_at)

    def test_is_shown_without_one(self, ticket, client, user):
        emit("ticket.sold", ticket)
        user.is_staff = user.is_superuser = True
        user.save()
        client.force_login(user)
        pages = [LIST, detail(ScheduledTask.objects.first()), f"/api/v1/entities/testapp.ticket/{ticket.pk}/tasks/"]

        assert [client.get(page).status_code for page in pages] == [200, 200, 200]
        assert "admission.remind" in client.get(pages[-1]).text

    def test_is_enrolled_within_one(self, ticket):
        with scope(shop="north"):
            assert enroll(Admission, Ticket.objects.all()).started == 1

    def test_ends_with_its_rows(self, ticket):
        emit("ticket.sold", ticket)

        ticket.delete()

        assert not ScheduledTask.objects.open().exists()
