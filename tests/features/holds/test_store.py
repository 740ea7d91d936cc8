"""What is on hold, as it is asked for."""

from __future__ import annotations

import pytest

from timeline.features.holds.store import OnHold, covers, holds_over, is_any_open, on_hold, tasks_under
from timeline.models import EntityRef, Hold, ScheduledTask, Scope

pytestmark = pytest.mark.django_db

USER = {"entity_label": "accounts.user", "entity_id": "7"}


@pytest.fixture
def held(now):
    def put(scope, target="", **columns):
        if scope == Scope.ENTITY:
            columns = {**USER, "names": [list(USER.values()), ["accounts.customer", "7"]]}
        return Hold.objects.create(scope=scope, target=target, reason="x", created_at=now, **columns)

    return put


class TestOnHold:
    def test_is_nothing_where_nobody_holds_anything(self, held, now):
        held(Scope.EVERYTHING, lifted_at=now, released_at=now)

        assert on_hold(using="default") == OnHold()
        assert not is_any_open(using="default")

    def test_tells_each_target_once(self, held):
        for _ in range(2):
            held(Scope.TASK, "trial.remind")
            held(Scope.ENTITY)

        found = on_hold(using="default")

        assert found == OnHold(frozenset({("task", "trial.remind"), ("entity", "")}))
        assert found.parts == {"on_hold"}
        assert is_any_open(using="default")

    @pytest.mark.parametrize(
        ("scope", "target", "is_covered"),
        [
            ("task", "trial.remind", True),
            ("task", "trial.rem", False),
            ("timeline", "trial", True),
            ("timeline", "tria", False),
            ("queue", "default", True),
            ("queue", "mail", False),
            ("tag", "mail", True),
            ("tag", "default", False),
            ("everything", "", True),
            ("entity", "", False),
        ],
    )
    def test_covers_a_kind(self, scope, target, is_covered):
        assert OnHold(frozenset({(scope, target)})).covers("trial.remind", "mail") == is_covered

    def test_takes_the_queue_of_the_row_where_the_kind_is_not_known(self):
        assert OnHold(frozenset({("queue", "mail")})).covers("gone.remind", "mail")


class TestHoldsOver:
    def test_finds_all_the_holds_of_each_task_in_one_statement(self, held, make_task, django_assert_num_queries):
        theirs = make_task(**USER)
        child = make_task(entity_label="accounts.customer", entity_id="7", task_key="other.task")
        free = make_task(task_key="other.task", entity_label="accounts.user", entity_id="8")
        entity, kind = held(Scope.ENTITY), held(Scope.TASK, "trial.remind")

        with django_assert_num_queries(1):
            found = holds_over([theirs, child, free], using="default")

        assert found == {theirs.pk: [entity, kind], child.pk: [entity]}

    def test_agrees_with_what_covers_and_what_is_claimed(self, held, make_task):
        rows = [make_task(**USER), make_task(), make_task(task_key="other.task")]
        named = [(Scope.TIMELINE, "trial"), (Scope.TASK, "other.task"), (Scope.QUEUE, "default"), (Scope.TAG, "mail")]
        holds = [held(Scope.ENTITY), *(held(*each) for each in named), held(Scope.EVERYTHING)]
        for hold in holds:
            found = holds_over(rows, using="default")
            covered = {row.pk for row in rows if covers(hold, row)}

            assert {pk for pk, holds in found.items() if hold in holds} == covered
            assert set(tasks_under([hold], ScheduledTask.objects.all()).values_list("pk", flat=True)) == covered

    def test_leaves_the_others_free(self, held, make_task):
        make_task(**USER)
        free = make_task(entity_label="accounts.user", entity_id="8")
        make_task(task_key="other.task")
        held(Scope.ENTITY)
        held(Scope.TASK, "other.task")

        keys = ["trial.remind", "other.task"]

        assert list(ScheduledTask.objects.taken_of(keys, on_hold(using="default"))) == [free]

    def test_is_told_of_an_entity_of_any_text(self, held, make_task, now):
        ref = EntityRef("accounts.user", 'it\'s "7"\\ 🙂')
        row = make_task(entity_label=ref.label, entity_id=ref.id)
        hold = Hold.objects.create(
            scope="entity", entity_label=ref.label, entity_id=ref.id, names=[list(ref)], reason="x", created_at=now
        )

        assert holds_over([row], using="default") == {row.pk: [hold]}
        assert not ScheduledTask.objects.all().not_of_held_entities().exists()
