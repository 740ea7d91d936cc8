"""``POST events/`` of what people are asked for: the right to emit is not theirs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.api.test_tasks import problem
from tests.testapp.models import Order
from timeline import Machine, Timeline, approval, never, task
from timeline.models import Event, ScheduledTask, TimelineRun
from timeline.policy import TimelinePolicy
from timeline.shortcuts import approve, emit, start
from timeline.testing import only_timelines

RIGHT = "change_user"


class Payout(Timeline):
    """Somebody has to agree."""

    entity = "testapp.Order"
    paid: list[str] = []

    @task(approval("payout", by=f"accounts.{RIGHT}", within=timedelta(days=2)))
    def pay(self, order) -> None:
        Payout.paid.append(self.awaited.name if self.awaited else "")


class Refunds(Machine):
    """Asks a clerk."""

    entity = "testapp.Order"
    starts_on = "refund.asked"
    initial = "open"
    table = {"open": {"refund.granted": "granted", "refund.late": "over"}, "granted": {}, "over": {}}
    timers = {"open": never}
    asks = {"refund.granted": f"accounts.{RIGHT}"}


class Audit(Machine):
    """Takes the same without asking anybody."""

    entity = "testapp.Order"
    starts_on = "refund.asked"
    initial = "quiet"
    table = {"quiet": {"refund.granted": "noted"}, "noted": {}}
    timers = {"quiet": never}


class Nightly(Timeline):
    """About nothing."""

    @task(approval("night", by=f"accounts.{RIGHT}", within=timedelta(days=2)))
    def clean(self) -> None: ...


class NothingAsked(TimelinePolicy):
    """A host's."""

    def may_ask(self, user, run, event, *, using):
        return False

    def may_decide(self, user, task):
        return False


@pytest.fixture(autouse=True)
def _known(clock):
    Payout.paid.clear()
    with only_timelines(Payout, Refunds, Nightly):
        yield


@pytest.fixture
def order(db):
    return Order.objects.create()


@pytest.fixture
def said(order):
    return lambda name, **more: {"name": name, "entity": {"label": "testapp.order", "id": str(order.pk)}, **more}


@pytest.fixture
def crm(person, asked_by):
    """An account of another program's: it may emit, and no more."""
    return asked_by(person("crm", "add_event"))


@pytest.fixture
def clerk(person, asked_by):
    """Who is asked, and may emit."""
    return asked_by(person("clerk", "add_event", "view_scheduledtask", RIGHT))


class TestWhoMayEmitOnly:
    @pytest.mark.parametrize("name", ["payout.approved", "payout.rejected"])
    @pytest.mark.parametrize("begun", [True, False])
    def test_decides_about_nothing(self, crm, order, said, name, begun, clock):
        if begun:
            start("payout", order)

        problem(crm.post("events/", said(name)), 403)

        clock.run_due()
        assert not Payout.paid
        assert not Event.objects.filter(name=name).exists()

    def test_decides_about_nothing_of_the_system(self, crm, order, said):
        start("nightly")

        problem(crm.post("events/", {"name": "night.approved"}), 403)

    @pytest.mark.parametrize("machine", ["", "refunds"])
    @pytest.mark.parametrize("begun", [True, False])
    def test_says_nothing_that_a_machine_asks_for(self, crm, order, said, machine, begun):
        if begun:
            emit("refund.asked", order)

        problem(crm.post("events/", said("refund.granted", machine=machine)), 403)

        assert not TimelineRun.objects.exclude(state="open").exists()

    def test_says_what_nobody_is_asked_for(self, crm, order, said):
        assert crm.post("events/", said("refund.asked")).status_code == 201
        assert crm.post("events/", said("refund.late")).status_code == 201
        assert TimelineRun.objects.get().state == "over"

    def test_needs_to_see_what_they_decide_about(self, person, asked_by, order, said):
        start("payout", order)
        blind = asked_by(person("blind", "add_event", RIGHT))

        problem(blind.post("events/", said("payout.approved")), 403)

    @pytest.mark.parametrize("name", ["payout.approved", "refund.granted"])
    def test_goes_by_the_hosts_policy(self, clerk, order, said, settings, name):
        settings.TIMELINE = {"POLICY": f"{__name__}.NothingAsked"}
        start("payout", order)
        emit("refund.asked", order)

        problem(clerk.post("events/", said(name)), 403)


class TestWhoIsAsked:
    def test_decides(self, clerk, order, said, clock):
        start("payout", order)

        answer = clerk.post("events/", said("payout.approved"))

        clock.run_due()
        assert (answer.status_code, Payout.paid) == (201, ["payout.approved"])

    @pytest.mark.parametrize("again", ["payout.approved", "payout.rejected"])
    @pytest.mark.parametrize("ran", [True, False])
    def test_decides_once(self, clerk, order, said, again, ran, clock):
        start("payout", order)
        approve(ScheduledTask.objects.get(), actor="ada")
        if ran:
            clock.run_due()

        told = problem(clerk.post("events/", said(again)), 409)

        assert told["type"] == "urn:timeline:already-decided"
        assert Event.objects.filter(name__startswith="payout.").count() == 1

    def test_may_send_it_again_with_its_key(self, clerk, order, said):
        start("payout", order)
        body = said("payout.approved", key="k")

        codes = [clerk.post("events/", body).status_code for _ in range(2)]

        assert codes == [201, 200]
        problem(clerk.post("events/", body | {"payload": {"reason": "else"}}), 409)

    def test_decides_in_time(self, clerk, order, said, clock):
        start("payout", order)
        clock.now += timedelta(days=2)

        assert problem(clerk.post("events/", said("payout.approved")), 409)["type"] == "urn:timeline:decided-too-late"

    def test_decides_about_what_waits_beside_what_is_decided(self, clerk, order, said, clock):
        for key in ("a", "b"):
            start("payout", order, key=key)
            if key == "a":
                assert clerk.post("events/", said("payout.approved")).status_code == 201
                clock.now += timedelta(minutes=1)

        assert clerk.post("events/", said("payout.rejected")).status_code == 201
        clock.run_due()
        assert Payout.paid == ["payout.approved", "payout.rejected"]

    def test_says_what_no_task_waits_for(self, clerk, order, said):
        assert clerk.post("events/", said("payout.approved")).status_code == 201

    def test_moves_a_machine(self, clerk, order, said):
        emit("refund.asked", order)

        assert clerk.post("events/", said("refund.granted")).status_code == 201
        assert TimelineRun.objects.get().state == "granted"

    def test_moves_beside_it_what_asks_nobody_if_they_may_emit(self, person, asked_by, clerk, order, said):
        with only_timelines(Refunds, Audit):
            emit("refund.asked", order)
            only_asked = asked_by(person("other", RIGHT))
            problem(only_asked.post("events/", said("refund.granted", machine="refunds")), 403)

            assert clerk.post("events/", said("refund.granted")).status_code == 201
            assert set(TimelineRun.objects.values_list("state", flat=True)) == {"granted", "noted"}


class TestWhoIsAskedForAnApproval:
    def test_needs_the_right_to_approve_as_well(self, person, asked_by, order, said):
        """A machine that asks for what another timeline takes for a yes gives nobody that right."""

        class Asking(Machine):
            entity = "testapp.Order"
            starts_on = "refund.asked"
            initial = "open"
            table = {"open": {"payout.approved": "over"}, "over": {}}
            timers = {"open": never}
            asks = {"payout.approved": "accounts.view_user"}

        with only_timelines(Payout, Asking):
            emit("refund.asked", order)
            start("payout", order)
            body = said("payout.approved", machine="asking")

            problem(asked_by(person("one", "view_user")).post("events/", body), 403)
            both = asked_by(person("two", "view_user", "view_scheduledtask", RIGHT))
            assert both.post("events/", body).status_code == 201
