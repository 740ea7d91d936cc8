"""A refund that somebody has to approve: what how-to/approvals.md says of approvals, with the pages and the API for it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.test import Client, override_settings

from project.accounts.models import User
from tests.testapp.models import Order
from timeline import Timeline, approval, task
from timeline.exceptions import (
    AlreadyDecided,
    ChangedSince,
    DecidedTooLate,
    DefinitionError,
    InvalidInput,
    TransitionNotAllowed,
    UnknownEvent,
)
from timeline.models import Event, ScheduledTask
from timeline.shortcuts import approve, cancel, emit, explain, leave, reject
from timeline.testing import only_timelines

API = "/api/v1/tasks"
ACT = "/admin/timeline/scheduledtask/act/"


class Refunding(Timeline):
    entity = "testapp.Order"
    starts_on = "refund.asked"

    @task(approval("refund", by="testapp.approve_refund", within=timedelta(days=2)))
    def refund(self, order):
        if self.awaited is None:
            return "nobody decided"
        return f"{self.awaited.name} by {self.awaited.actor}"

    @task()
    def on_demand(self, order): ...


@pytest.fixture
def asked(clock, order):
    """A refund that was asked for just now."""
    with only_timelines(Refunding):
        emit("refund.asked", order)
        yield ScheduledTask.objects.get(task_key="refunding.refund")


@pytest.fixture
def person(clock):
    """Make staff: ``person("boss", "approve_refund")``."""
    kind = ContentType.objects.get_for_model(Order)
    Permission.objects.get_or_create(content_type=kind, codename="approve_refund", name="Can approve a refund")

    def make(name, *permissions, is_staff=True):
        made = User.objects.create(
            email=f"{name}@example.com", signed_up_at=clock.now, trial_ends_at=clock.now, is_staff=is_staff
        )
        made.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        return made

    return make


@pytest.fixture
def boss(person):
    return person("boss", "view_scheduledtask", "approve_refund")


def client_of(user):
    client = Client()
    client.force_login(user)
    return client


def post(user, row, verb, body=None, **headers):
    return client_of(user).post(f"{API}/{row.pk}/{verb}/", body or {}, content_type="application/json", headers=headers)


def end(row, clock):
    clock.run_due()
    row.refresh_from_db()
    return row.result


def decisions():
    return list(Event.objects.filter(name__startswith="refund.", actor__gt="").values_list("name", "actor", "payload"))


class TestApproved:
    def test_goes_on_at_once_and_is_told_by_whom(self, asked, clock):
        due = approve(asked, actor="boss", reason="she is right")

        assert (due.state, due.scheduled_at) == ("available", clock.now)
        assert end(asked, clock) == "refund.approved by boss"
        assert decisions() == [("refund.approved", "boss", {"reason": "she is right"})]

    def test_needs_no_reason(self, asked, clock):
        approve(asked, actor="boss")

        assert decisions() == [("refund.approved", "boss", {})]

    def test_by_the_hosts_own_code(self, asked, clock):
        """The host decides for itself who may."""
        emit("refund.approved", asked.entity_ref, actor="rules of the shop")

        assert end(asked, clock) == "refund.approved by rules of the shop"

    @override_settings(TIMELINE={"STRICT_EVENTS": True})
    def test_is_an_event_that_is_known(self, asked, clock):
        with pytest.raises(UnknownEvent):
            emit("refund.forgotten", asked.entity_ref)

        approve(asked, actor="boss")


class TestRejected:
    def test_goes_on_at_once_and_is_told_by_whom(self, asked, clock):
        reject(asked, actor="boss", reason="a fraud")

        assert end(asked, clock) == "refund.rejected by boss"
        assert decisions() == [("refund.rejected", "boss", {"reason": "a fraud"})]


class TestNotAtAll:
    def test_goes_on_without_when_the_time_is_over(self, asked, clock):
        clock.advance(days=2)

        assert end(asked, clock) == "nobody decided"


class TestTooLate:
    def test_by_a_second(self, asked, clock):
        clock.set(clock.now + timedelta(days=2))

        with pytest.raises(
            DecidedTooLate, match=r"was to be decided before 2026-.* UTC\. It goes on without a decision\."
        ):
            approve(asked, actor="boss")

        assert decisions() == []
        assert end(asked, clock) == "nobody decided"

    def test_in_time_though_nobody_ran_it_until_later(self, asked, clock):
        clock.set(clock.now + timedelta(days=2) - timedelta(seconds=1))
        approve(asked, actor="boss")
        clock.set(clock.now + timedelta(days=9))

        assert end(asked, clock) == "refund.approved by boss"

    def test_after_the_task_has_ended_undecided(self, asked, clock):
        cancel(asked, reason="she withdrew it", actor="ada")

        with pytest.raises(TransitionNotAllowed, match="It has ended, and waits for nothing"):
            approve(asked, actor="boss")

    def test_after_its_run_has_ended(self, asked, clock):
        leave("refunding", asked.entity_ref, reason="she withdrew it")

        with pytest.raises(TransitionNotAllowed):
            reject(asked, actor="boss")


class TestGivenTwice:
    def test_says_who_was_first_and_changes_nothing(self, asked, clock):
        at = clock.now
        approve(asked, actor="boss", seen={asked.pk: asked.seq})
        clock.set(at + timedelta(hours=1))

        with pytest.raises(AlreadyDecided) as refused:
            reject(asked, actor="deputy", seen={asked.pk: asked.seq})

        error = refused.value
        assert (error.event, error.actor, error.at) == ("refund.approved", "boss", at)
        assert "was decided already: refund.approved by boss, " in str(error)
        assert decisions() == [("refund.approved", "boss", {})]
        assert end(asked, clock) == "refund.approved by boss"

    def test_says_it_still_when_the_task_has_completed(self, asked, clock):
        approve(asked, actor="boss")
        end(asked, clock)

        with pytest.raises(AlreadyDecided):
            approve(asked, actor="boss")

    def test_says_it_of_the_hosts_own_code(self, asked, clock):
        emit("refund.rejected", asked.entity_ref)

        with pytest.raises(AlreadyDecided, match=r"decided already: refund\.rejected, 2"):
            approve(asked, actor="boss")

    def test_of_an_earlier_run_does_not_count(self, asked, clock):
        approve(asked, actor="boss")
        end(asked, clock)
        clock.advance(hours=1)
        emit("refund.asked", asked.entity_ref)
        again = ScheduledTask.objects.get(task_key="refunding.refund", state="scheduled")

        reject(again, actor="boss")

        assert end(again, clock) == "refund.rejected by boss"


class TestWhatAsksForNothing:
    def test_is_refused(self, asked, make_task, order):
        row = make_task(task_key="refunding.on_demand", entity_label="testapp.order", entity_id=str(order.pk))

        with pytest.raises(InvalidInput, match="asks for no approval"):
            approve(row, actor="boss")

    def test_that_has_changed_is_looked_at_again(self, asked):
        with pytest.raises(ChangedSince):
            approve(asked, actor="boss", seen={asked.pk: asked.seq + 1})


class TestDeclared:
    @pytest.mark.parametrize(
        ("name", "by"), [("", "shop.approve"), ("two words", "shop.approve"), (3, "shop.approve"), ("x" * 92, "a.b")]
    )
    def test_with_a_name_that_is_none(self, name, by):
        with pytest.raises(DefinitionError, match=r"Wrong\.refund: asks for the approval"):
            self.declare(name, by)

    @pytest.mark.parametrize("by", ["", "approve", "a.b.c", 3, None])
    def test_with_a_permission_that_is_none(self, by):
        with pytest.raises(DefinitionError, match=r"Wrong\.refund: is approved by"):
            self.declare("refund", by)

    def declare(self, name, by):
        class Wrong(Timeline):
            entity = "testapp.Order"

            @task(approval(name, by=by, within=timedelta(days=1)))
            def refund(self, order): ...


class TestByTheAPI:
    def test_approves_with_the_name_of_who_asks(self, asked, boss, clock):
        answer = post(boss, asked, "approve", {"reason": "she is right"})

        assert (answer.status_code, answer.json()["state"]) == (200, "available")
        assert end(asked, clock) == "refund.approved by boss@example.com"

    def test_rejects(self, asked, boss, clock):
        assert post(boss, asked, "reject", {"reason": "a fraud"}).status_code == 200
        assert end(asked, clock) == "refund.rejected by boss@example.com"

    @pytest.mark.parametrize("verb", ["approve", "reject"])
    def test_is_forbidden_without_the_permission(self, asked, person, verb):
        everything_else = person("operator", "view_scheduledtask", "cancel_scheduledtask", "decide_scheduledtask")

        assert post(everything_else, asked, verb).status_code == 403
        assert decisions() == []

    def test_tells_nobody_else_who_decided(self, asked, person):
        approve(asked, actor="boss")

        answer = post(person("operator", "view_scheduledtask"), asked, "approve")

        assert (answer.status_code, "boss" in answer.content.decode()) == (403, False)

    def test_is_forbidden_to_who_is_no_staff(self, asked, person):
        """They do not see it: it is as if it were not there."""
        assert post(person("ada", "approve_refund", is_staff=False), asked, "approve").status_code == 404

    def test_does_not_find_what_one_does_not_see(self, asked, person):
        assert post(person("clerk", "approve_refund"), asked, "approve").status_code == 404

    def test_says_who_decided_already(self, asked, boss):
        approve(asked, actor="deputy")

        answer = post(boss, asked, "reject")

        assert (answer.status_code, answer.json()["type"]) == (409, "urn:timeline:already-decided")
        assert "by deputy" in answer.json()["detail"]

    def test_says_that_it_is_too_late(self, asked, boss, clock):
        clock.set(clock.now + timedelta(days=3))

        answer = post(boss, asked, "approve")

        assert (answer.status_code, answer.json()["type"]) == (409, "urn:timeline:decided-too-late")

    def test_decides_once_with_a_key(self, asked, boss):
        answers = [post(boss, asked, "approve", {}, **{"Idempotency-Key": "1"}) for _ in range(2)]

        assert [answer.status_code for answer in answers] == [200, 200]
        assert len(decisions()) == 1

    def test_refuses_what_has_changed(self, asked, boss):
        assert post(boss, asked, "approve", {}, **{"If-Match": '"99"'}).status_code == 412
        assert decisions() == []

    def test_shows_what_it_waits_for_and_what_one_may_do(self, asked, boss, person, clock):
        shown = client_of(boss).get(f"{API}/{asked.pk}/").json()

        assert shown["actions"] == ["approve", "reject"]
        assert {**shown["wait"], "since": "", "until": ""} == {
            "events": ["refund.approved", "refund.rejected"],
            "key": "",
            "entity": {"label": "testapp.order", "id": asked.entity_id},
            "since": "",
            "until": "",
            "permission": "testapp.approve_refund",
        }
        other = client_of(person("viewer", "view_scheduledtask")).get(f"{API}/{asked.pk}/").json()
        assert other["actions"] == []
        approve(asked, actor="boss")
        assert client_of(boss).get(f"{API}/{asked.pk}/").json()["wait"] is None


class TestOnThePage:
    def page(self, user, row):
        return client_of(user).get(f"/admin/timeline/scheduledtask/{row.pk}/change/").content.decode()

    def press(self, user, row, action, **given):
        sent = {"action": action, "task": row.pk, "alone": "1", **given}
        return client_of(user).post(ACT, sent, follow=True).content.decode()

    def test_says_what_is_asked_and_of_whom(self, asked, boss):
        page = self.page(boss, asked)

        assert "Waits for a decision" in page
        assert "testapp.approve_refund" in page
        assert "Somebody with the permission “testapp.approve_refund” is to approve or reject it" in page
        assert 'value="approve"' in page
        assert 'value="reject"' in page

    def test_has_no_buttons_for_who_may_not(self, asked, person):
        page = self.page(person("viewer", "view_scheduledtask"), asked)

        assert "Waits for a decision" in page
        assert 'value="approve"' not in page

    def test_approves_without_a_reason(self, asked, boss, clock):
        assert "It is approved. The task goes on." in self.press(
            boss, asked, "approve", confirmed="1", seen=f"{asked.pk}:{asked.seq}"
        )
        assert end(asked, clock) == "refund.approved by boss@example.com"

    def test_rejects_with_a_reason_only(self, asked, boss, clock):
        seen = f"{asked.pk}:{asked.seq}"

        assert "Please correct this" in self.press(boss, asked, "reject", confirmed="1", seen=seen)
        assert decisions() == []
        self.press(boss, asked, "reject", confirmed="1", seen=seen, reason="a fraud")
        assert decisions() == [("refund.rejected", "boss@example.com", {"reason": "a fraud"})]

    def test_says_who_decided_meanwhile(self, asked, boss):
        approve(asked, actor="deputy")

        said = self.press(boss, asked, "reject", confirmed="1", seen=f"{asked.pk}:0", reason="a fraud")

        assert "It was decided already: refund.approved by deputy" in said
        assert len(decisions()) == 1

    def test_does_nothing_for_who_may_not(self, asked, person):
        said = self.press(person("viewer", "view_scheduledtask"), asked, "approve", confirmed="1")

        assert "You may not do this with it." in said
        assert decisions() == []

    def test_tells_nobody_else_who_decided(self, asked, person):
        approve(asked, actor="deputy")

        said = self.press(person("viewer", "view_scheduledtask"), asked, "approve", confirmed="1")

        assert "It asks for no approval of yours." in said


class TestExplain:
    def test_says_what_is_asked_and_what_was_said(self, asked, clock):
        assert "refund.approved or refund.rejected" in explain(asked)
        assert "Somebody with the permission “testapp.approve_refund”" in explain(asked)
        approve(asked, actor="boss")
        end(asked, clock)
        assert "refund.approved by boss" in explain(ScheduledTask.objects.get(pk=asked.pk))
