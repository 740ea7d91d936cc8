"""Who may see which tasks, and do what with them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser, Permission
from django.utils.functional import SimpleLazyObject

from project.accounts.models import User
from tests.testapp.models import Order, Plan, Seat
from timeline import Timeline, approval, policy, task
from timeline.lifecycle import FINAL, OPEN, WAITING, ReasonCode, State
from timeline.models import EntityRef, Hold, ScheduledTask, TimelineRun, ref_of
from timeline.policy import Action, Belonging, TimelinePolicy, get_policy
from timeline.testing import only_timelines


class Account(Timeline):
    entity = "accounts.User"

    @task()
    def greet(self, user) -> None: ...


class Seating(Timeline):
    entity = "testapp.Seat"
    owner = "plan.user"

    @task()
    def free(self, seat) -> None: ...


class Accounting(Timeline):
    """About the same seats, and nobody's but staff's."""

    entity = "testapp.Seat"

    @task()
    def bill(self, seat) -> None: ...


@pytest.fixture(autouse=True)
def _only_these():
    with only_timelines(Account, Seating, Accounting):
        yield


@pytest.fixture
def person(db, now):
    """Make an account: ``person("ada")``; with permissions it is staff."""

    def make(name, *permissions, **columns):
        made = User.objects.create(email=f"{name}@example.com", signed_up_at=now, trial_ends_at=now, **columns)
        made.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        return made

    return make


@pytest.fixture
def seat():
    """Make a seat of a user's."""
    return lambda user: Seat.objects.create(plan=Plan.objects.create(user=user))


@pytest.fixture
def about(make_task):
    """Make a row about an entity: ``about("account.greet", ada)``."""

    def make(task_key, entity, **columns):
        ref = ref_of(entity)
        return make_task(task_key=task_key, entity_label=ref.label, entity_id=ref.id, **columns)

    return make


def seen(user):
    return set(TimelinePolicy().visible(ScheduledTask.objects.all(), user))


class TestVisible:
    def test_is_all_for_staff_who_may_view(self, person, about):
        rows = {about("account.greet", person("ada")), about("account.greet", None)}

        assert seen(person("operator", "view_scheduledtask", is_staff=True)) == rows

    def test_is_what_is_about_oneself_for_everybody_else(self, person, about):
        ada, ben = person("ada"), person("ben")
        own = about("account.greet", ada)
        about("account.greet", ben)
        about("account.greet", None)

        assert seen(ada) == {own}

    def test_is_what_a_timeline_says_is_theirs(self, person, about, seat):
        ada, ben = person("ada"), person("ben")
        own = about("seating.free", seat(ada))
        about("seating.free", seat(ben))

        assert seen(ada) == {own}

    def test_leaves_out_what_another_timeline_has_about_the_same_entity(self, person, about, seat):
        ada = person("ada")
        about("accounting.bill", seat(ada))

        assert seen(ada) == set()

    def test_takes_no_other_model_with_the_same_key_for_oneself(self, person, about):
        ada = person("ada")
        Order.objects.create(pk=ada.pk)
        about("account.greet", Order(pk=ada.pk))

        assert seen(ada) == set()

    @pytest.mark.parametrize(
        ("permissions", "columns"),
        [
            ([], {"is_staff": True}),
            (["view_scheduledtask"], {"is_staff": False}),
            (["view_scheduledtask"], {"is_staff": True, "is_active": False}),
        ],
        ids=["staff without it", "with it but not staff", "a closed account of staff"],
    )
    def test_asks_for_permission_and_staff_and_an_active_account(self, person, about, permissions, columns):
        about("account.greet", person("ada"))

        assert seen(person("ben", *permissions, **columns)) == set()

    def test_is_nothing_for_a_closed_account(self, person, about):
        closed = person("closed", is_active=False)
        about("account.greet", closed)

        assert seen(closed) == set()

    def test_is_nothing_for_who_is_not_logged_in(self, person, about):
        about("account.greet", person("ada"))

        assert seen(AnonymousUser()) == set()

    def test_takes_what_a_request_gives_as_its_user(self, person, about):
        ada = person("ada")
        own = about("account.greet", ada)

        assert seen(SimpleLazyObject(lambda: ada)) == {own}

    def test_asks_as_often_for_ten_rows_as_for_a_hundred(self, person, about, seat, django_assert_num_queries):
        ada = person("ada")
        for number in (10, 90):
            for _ in range(number):
                about("seating.free", seat(ada))
            with django_assert_num_queries(2):
                seen(ada)


class TestConcerning:
    def test_is_what_is_about_a_user_and_what_is_theirs(self, person, about, seat):
        ada, ben = person("ada"), person("ben")
        wanted = {about("account.greet", ada), about("seating.free", seat(ada))}
        about("accounting.bill", seat(ada))
        about("account.greet", ben)
        about("account.greet", None)

        assert set(TimelinePolicy().concerning(ScheduledTask.objects.all(), ada)) == wanted

    def test_finds_out_once_what_is_whose(self, person, about, seat, django_assert_num_queries):
        ada, policy = person("ada"), TimelinePolicy()
        mine = seat(ada)
        about("seating.free", mine)

        with django_assert_num_queries(2):  # Of the seats, then of the rows.
            assert policy.visible(ScheduledTask.objects.all(), ada).count() == 1
        with django_assert_num_queries(0):
            assert policy.sees_timeline(ada, "seating", ref_of(mine), using="default")


class TestSeesTimeline:
    def test_agrees_with_what_is_visible(self, person, about, seat):
        ada, ben = person("ada"), person("ben")
        staff = person("operator", "view_scheduledtask", is_staff=True)
        rows = [
            about("account.greet", ada),
            about("account.greet", ben),
            about("seating.free", seat(ada)),
            about("seating.free", seat(ben)),
            about("accounting.bill", seat(ada)),
        ]

        for user in (ada, ben, staff, AnonymousUser(), person("closed", is_active=False)):
            told = {
                row
                for row in rows
                if TimelinePolicy().sees_timeline(user, row.timeline, row.entity_ref, using="default")
            }
            assert told == seen(user)


class TestActions:
    @pytest.mark.parametrize(
        ("action", "states"),
        [(Action.CANCEL, OPEN), (Action.MOVE, OPEN), (Action.RUN_NOW, WAITING), (Action.REDRIVE, FINAL)],
    )
    @pytest.mark.parametrize("state", State)
    def test_are_those_permitted_that_the_state_lets_happen(self, person, make_task, action, states, state):
        staff = person("operator", f"{action}_scheduledtask", is_staff=True)

        actions = TimelinePolicy().actions(staff, make_task(state=state))

        assert actions == ([action] if state in states else [])

    @pytest.mark.parametrize("code", ["", *ReasonCode])
    @pytest.mark.parametrize("state", OPEN)
    def test_are_to_decide_where_a_task_rests_because_of_a_step(self, person, make_task, state, code):
        staff = person("operator", "decide_scheduledtask", is_staff=True)

        actions = TimelinePolicy().actions(staff, make_task(state=state, reason_code=code))

        rests = state == State.RETRYABLE and code in ("in_doubt", "definition")
        assert actions == ([Action.DECIDE] if rests else [])

    def test_are_none_for_the_owner(self, person, about):
        ada = person("ada")

        assert TimelinePolicy().actions(ada, about("account.greet", ada)) == []

    def test_are_none_with_the_permission_but_not_staff(self, person, make_task):
        ada = person("ada", *(f"{action}_scheduledtask" for action in Action))

        assert TimelinePolicy().actions(ada, make_task()) == []


class OwnersMayCancel(TimelinePolicy):
    """Who owns a seat may call off what its timeline has."""

    def allows(self, user, action, task=None):
        if action == Action.CANCEL and task is not None and task.timeline == "seating" and self.is_theirs(user, task):
            return True
        return super().allows(user, action, task)


class TestAllows:
    def test_is_asked_with_the_task(self, person, about, seat):
        ada, bob = person("ada"), person("bob")
        hers = about("seating.free", seat(ada))
        policy = OwnersMayCancel()

        assert policy.actions(ada, hers) == [Action.CANCEL]
        assert policy.actions(bob, hers) == []
        assert policy.actions(ada, about("account.greet", ada)) == []

    def test_is_asked_with_the_task_of_an_approval(self, person):
        asked = []

        class Refunds(Timeline):
            entity = "testapp.Order"

            @task(approval("refund", by="testapp.change_order", within=timedelta(days=1)))
            def refund(self, order) -> None: ...

        class Asked(TimelinePolicy):
            def allows(self, user, action, task=None):
                asked.append((action, task))
                return False

        row = ScheduledTask(task_key="refunds.refund", run=TimelineRun(timeline="refunds"))
        with only_timelines(Refunds):
            Asked().may_decide(person("ada"), row)

        assert asked == [(Action.APPROVE, row)]

    def test_is_asked_without_one_for_many(self, person):
        staff = person("eva", "cancel_scheduledtask", is_staff=True)

        assert OwnersMayCancel().allows(staff, Action.CANCEL)
        assert not OwnersMayCancel().allows(person("ada"), Action.CANCEL)


class TestIsTheirs:
    def test_is_true_of_what_is_about_oneself_and_of_what_a_timeline_says_is_ones_own(self, person, about, seat):
        ada, bob = person("ada"), person("bob")
        policy = TimelinePolicy()

        for row in (about("account.greet", ada), about("seating.free", seat(ada))):
            assert policy.is_theirs(ada, row)
            assert not policy.is_theirs(bob, row)
        assert not policy.is_theirs(ada, about("accounting.bill", seat(ada)))

    def test_is_false_for_staff_and_for_who_is_not_logged_in(self, person, about):
        row = about("account.greet", person("ada"))

        assert not TimelinePolicy().is_theirs(person("eva", "view_scheduledtask", is_staff=True), row)
        assert not TimelinePolicy().is_theirs(AnonymousUser(), row)
        assert not TimelinePolicy().is_theirs(person("zoe", is_active=False), row)


class TestOtherRights:
    @pytest.mark.parametrize(
        ("right", "permission"),
        [
            ("sees_payload", "view_payload"),
            ("may_emit", "add_event"),
            ("sees_health", "view_scheduledtask"),
        ],
    )
    def test_go_by_staffs_permission(self, person, right, permission):
        policy = TimelinePolicy()

        assert getattr(policy, right)(person("one", permission, is_staff=True))
        assert not getattr(policy, right)(person("two", is_staff=True))
        assert not getattr(policy, right)(person("three", permission))
        assert not getattr(policy, right)(AnonymousUser())


class Strict(TimelinePolicy):
    """Shows nobody anything."""

    def visible(self, tasks, user):
        return tasks.none()


class TestGetPolicy:
    def test_gives_the_hosts_own(self, settings):
        settings.TIMELINE = {"POLICY": "tests.test_policy.Strict"}

        assert isinstance(get_policy(), Strict)

    def test_gives_the_default_otherwise(self):
        assert type(get_policy()) is TimelinePolicy


@pytest.fixture
def many(monkeypatch):
    """From the second entity on, those of an owner are looked up by a query."""
    monkeypatch.setattr(policy, "FEW", 1)


class Parcels(Timeline):
    """About what has a key of text, and of a number."""

    entity = "testapp.Plan"
    owner = "user"

    @task()
    def renew(self, plan) -> None: ...


@pytest.mark.usefixtures("many")
class TestManyOwned:
    def test_are_seen_by_their_owner_alone(self, person, about, seat):
        ada, ben = person("ada"), person("ben")
        own = {about("seating.free", seat(ada)) for _ in range(3)}
        for _ in range(3):
            about("seating.free", seat(ben))
        about("accounting.bill", seat(ada))

        assert seen(ada) == own

    def test_are_found_by_a_number(self, person, make_task):
        ada, ben = person("ada"), person("ben")
        with only_timelines(Parcels):
            rows = [
                make_task(task_key="parcels.renew", entity_label="testapp.plan", entity_id=str(plan.pk))
                for plan in [Plan.objects.create(user=user) for user in (ada, ada, ben, ben)]
            ]

            assert seen(ada) == set(rows[:2])

    def test_stand_beside_rows_whose_text_is_no_such_key(self, person, about, seat, make_task):
        """The key of the model was another once; a list of keys did not mind, and a cast would."""
        ada = person("ada")
        own = {about("seating.free", seat(ada)) for _ in range(2)}
        for text in ["12", "none", "", "x" * 100, "9" * 40, "-", "1-1"]:
            label = "testapp.seat" if text else ""
            make_task(task_key="seating.free", entity_label=label, entity_id=text)
        assert seen(ada) == own
        with only_timelines(Parcels):
            plan = [
                make_task(task_key="parcels.renew", entity_label="testapp.plan", entity_id=t) for t in ("x", "9" * 40)
            ]
            assert len(plan) == 2
            [Plan.objects.create(user=ada) for _ in range(2)]
            assert seen(ada) == set()

    def test_are_asked_for_as_often_as_few(self, person, about, seat, django_assert_num_queries):
        ada = person("ada")
        for _ in range(5):
            about("seating.free", seat(ada))

        with django_assert_num_queries(2):
            assert len(seen(ada)) == 5

    def test_have_timelines_that_their_owner_sees(self, person, seat):
        ada, ben = person("ada"), person("ben")
        mine = [seat(ada) for _ in range(2)]
        theirs = [seat(ben) for _ in range(2)]

        def sees(user, entity):
            return TimelinePolicy().sees_timeline(user, "seating", ref_of(entity), using="default")

        assert [sees(ada, one) for one in (*mine, *theirs)] == [True, True, False, False]
        assert not TimelinePolicy().sees_timeline(ada, "seating", EntityRef("testapp.seat", "none"), using="default")

    def test_can_be_a_query_that_the_host_gives(self, person, about, seat):
        ada, ben = person("ada"), person("ben")
        shared = about("seating.free", seat(ben))
        about("seating.free", seat(ben))

        class Sharing(TimelinePolicy):
            def belongings(self, user, *, using):
                shown = Seat.objects.using(using).filter(pk=shared.entity_id)
                return [Belonging("seating", "testapp.seat", shown), Belonging("", "accounts.user", [str(user.pk)])]

        assert set(Sharing().visible(ScheduledTask.objects.all(), ada)) == {shared}

    @pytest.mark.parametrize("as_query", [(False, False), (True, False), (False, True), (True, True)])
    def test_meet_where_something_is_in_both(self, person, seat, as_query):
        mine, both, theirs = (seat(person(name)) for name in ("ada", "ben", "eve"))

        def belonging(timeline, seats, is_query):
            keys = [one.pk for one in seats]
            ids = Seat.objects.filter(pk__in=keys) if is_query else [str(key) for key in keys]
            return Belonging(timeline, "testapp.seat", ids)

        first, second = as_query
        known = belonging("seating", [mine, both], first)
        others = [
            (belonging("seating", [both, theirs], second), True),
            (belonging("", [both], second), True),
            (belonging("seating", [theirs], second), False),
            (belonging("seating", [], second), False),
            (belonging("accounting", [both], second), False),
            (Belonging("", "accounts.user", [str(both.pk)]), False),
        ]
        assert [known.meets(one, using="default") for one, _meets in others] == [meets for _one, meets in others]


class TestHolds:
    @pytest.mark.parametrize(
        ("permissions", "sees", "holds"),
        [
            ([], False, False),
            (["view_scheduledtask", "cancel_scheduledtask"], False, False),
            (["view_hold"], True, False),
            (["hold_tasks"], True, True),
        ],
    )
    def test_are_for_staff_with_permissions_of_their_own(self, person, now, permissions, sees, holds):
        Hold.objects.create(scope="everything", reason="x", created_at=now)
        staff = person("operator", *permissions, is_staff=True)
        other = person("ada", *permissions)

        assert TimelinePolicy().visible_holds(Hold.objects.all(), staff).exists() is sees
        assert TimelinePolicy().may_hold(staff) is holds
        assert not TimelinePolicy().visible_holds(Hold.objects.all(), other).exists()
        assert not TimelinePolicy().may_hold(other)
