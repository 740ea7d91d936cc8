"""Families in the API, the admin and the policy: whoever looks finds an entity by any label of its family."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.db import connection, models
from django.test import Client

from project.accounts.models import User
from tests.testapp.models import Account, Customer, Reseller
from timeline import Timeline, after, task
from timeline.models import ScheduledTask, TimelineRun
from timeline.policy import get_policy
from timeline.shortcuts import emit, start
from timeline.testing import only_timelines

LABELS = ["testapp.account", "testapp.customer", "testapp.reseller"]


class Expiry(Timeline):
    """About accounts."""

    entity = "testapp.Account"
    starts_on = "published"

    @task(after(days=1))
    def end(self, account: Account) -> None: ...


class Press(Timeline):
    """About customers, who are accounts."""

    entity = "testapp.Customer"
    starts_on = "published"

    @task(after(days=2))
    def announce(self, customer: Customer) -> None: ...


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(Expiry, Press):
        yield


@pytest.fixture
def staff(clock):
    """The browser of somebody who may see and emit."""
    person = User.objects.create(email="s@example.com", signed_up_at=clock.now, trial_ends_at=clock.now, is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename__in=["view_scheduledtask", "add_event"]))
    client = Client()
    client.force_login(person)
    return client


@pytest.fixture
def reseller(clock):
    Account.objects.create()
    made = Reseller.objects.create(note="paid in full")
    emit("published", made)
    return made


class TestTheAPI:
    @pytest.mark.parametrize("label", [*LABELS, "testapp.customerproxy"])
    def test_shows_an_entity_by_any_label(self, staff, reseller, label):
        answer = staff.get(f"/api/v1/entities/{label}/{reseller.pk}/tasks/")

        assert [row["task"] for row in answer.json()["upcoming"]["results"]] == ["expiry.end", "press.announce"]

    def test_knows_no_child_that_there_is_not(self, staff, clock):
        account = Account.objects.create()

        with only_timelines(Press):
            answers = [staff.get(f"/api/v1/entities/{label}/{account.pk}/tasks/") for label in LABELS]

        assert [answer.status_code for answer in answers] == [404] * 3

    def test_shows_a_parent_that_has_nothing_yet_of_a_timeline_about_its_child(self, staff, clock):
        customer = Customer.objects.create()

        with only_timelines(Press):
            assert staff.get(f"/api/v1/entities/testapp.account/{customer.pk}/tasks/").status_code == 200

    @pytest.mark.parametrize("label", LABELS)
    def test_takes_an_event_by_any_label(self, staff, clock, label):
        made = Reseller.objects.create()
        body = {"name": "published", "entity": {"label": label, "id": str(made.pk)}}

        answer = staff.post("/api/v1/events/", body, content_type="application/json")

        assert (answer.status_code, answer.json()["started"]) == (201, ["expiry", "press"])
        assert answer.json()["event"]["entity"] == {"label": "testapp.account", "id": str(made.pk)}


class TestTheAdmin:
    @pytest.mark.parametrize("label", LABELS)
    def test_has_one_page_by_any_label(self, staff, reseller, label):
        page = staff.get("/admin/timeline/scheduledtask/entity/", {"label": label, "id": str(reseller.pk)})

        assert page.status_code == 200
        assert "expiry.end" in page.content.decode()
        assert "press.announce" in page.content.decode()

    @pytest.mark.parametrize("label", LABELS)
    def test_finds_it_by_any_label(self, staff, reseller, label):
        emit("published", Customer.objects.create())

        page = staff.get("/admin/timeline/scheduledtask/", {"q": f"{label} {reseller.pk}"}).content.decode()

        for row in ScheduledTask.objects.all():
            assert (str(row.pk) in page) is (row.entity_id == str(reseller.pk))

    def test_has_no_page_of_a_child_that_there_is_not(self, staff, clock):
        account = Account.objects.create()

        page = staff.get("/admin/timeline/scheduledtask/entity/", {"label": "testapp.customer", "id": str(account.pk)})

        assert page.status_code == 404


def take_back(model):
    """Let a model be known no more."""
    del apps.all_models["testapp"][model._meta.model_name]
    apps.clear_cache()


@pytest.fixture
def member_model(db):
    """A child of the user's model, which is swapped, by a link with a name of its own; for one test, with its table."""

    class Member(User):
        person = models.OneToOneField(User, models.CASCADE, parent_link=True, db_constraint=False)

        class Meta:
            app_label = "testapp"

    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE testapp_member (person_id {User._meta.pk.rel_db_type(connection)} PRIMARY KEY)")
    yield Member
    take_back(Member)
    del User.member


@pytest.fixture
def voucher_model(member_model):
    """What belongs to such a child."""

    class Voucher(models.Model):
        id = models.IntegerField(primary_key=True, default=1)
        member = models.ForeignKey(member_model, models.CASCADE, db_constraint=False)

        class Meta:
            app_label = "testapp"

        def __str__(self):
            return f"voucher {self.pk}"

    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE testapp_voucher (id integer PRIMARY KEY, member_id bigint)")
    yield Voucher
    take_back(Voucher)


class TestAChildOfTheUser:
    @pytest.fixture
    def member(self, member_model, clock):
        class Membership(Timeline):
            entity = "testapp.Member"
            starts_on = "joined"

            @task(after(days=1))
            def greet(self, member): ...

        made = member_model.objects.create(email="m@example.com", signed_up_at=clock.now, trial_ends_at=clock.now)
        with only_timelines(Membership):
            yield made

    def test_is_shown_what_is_about_them(self, member):
        emit("joined", User.objects.get(pk=member.pk))
        client = Client()
        client.force_login(User.objects.get(pk=member.pk))

        for path in ("me/tasks/", f"users/{member.pk}/tasks/", f"entities/testapp.member/{member.pk}/tasks/"):
            answer = client.get(f"/api/v1/{path}").json()
            assert [row["task"] for row in answer["upcoming"]["results"]] == ["membership.greet"], path

    def test_is_shown_nothing_about_others(self, member, clock):
        emit("joined", member)
        other = User.objects.create(email="o@example.com", signed_up_at=clock.now, trial_ends_at=clock.now)

        assert not get_policy().visible(ScheduledTask.objects.all(), other)

    def test_owns_what_leads_to_the_child(self, member, voucher_model, clock):
        class Renewal(Timeline):
            entity = "testapp.Voucher"
            owner = "member"

            @task(after(days=1))
            def renew(self, voucher): ...

        with only_timelines(Renewal):
            start(Renewal, voucher_model.objects.create(member=member))

            visible = get_policy().visible(ScheduledTask.objects.all(), User.objects.get(pk=member.pk))
            assert [each.task_key for each in visible] == ["renewal.renew"]

    def test_ends_with_the_user(self, member):
        emit("joined", member)

        User.objects.get(pk=member.pk).delete()

        assert TimelineRun.objects.get().end_reason == "the entity was deleted"
