"""Entities with keys of every kind: how rows name them, and how they are found again."""

import pytest
from django.utils.functional import SimpleLazyObject

from tests.testapp.models import (
    Account,
    Badge,
    Country,
    Customer,
    Employee,
    EmployeeProxy,
    Order,
    OrderProxy,
    Parcel,
    Reseller,
)
from timeline import Timeline, task
from timeline.exceptions import WrongEntity
from timeline.models import EntityRef, Event, ScheduledTask, TimelineRun, model_of, ref_of
from timeline.models.entities import MAX_ID, NO_ENTITY, family_of, keys_of, load_entities, naming
from timeline.store.locks import lock_entities
from timeline.testing import only_timelines

LABELS = {Order: "testapp.order", Parcel: "testapp.parcel", Country: "testapp.country"}


@pytest.fixture(params=[Order, Parcel, Country], ids=lambda model: model.__name__)
def entity(request, db):
    """A saved entity with an integer, a UUID and a string key."""
    if request.param is Country:
        return Country.objects.create(code="côte d'ivoire")
    return request.param.objects.create()


class TestRefOf:
    def test_names_label_and_key(self, entity):
        assert ref_of(entity) == EntityRef(LABELS[type(entity)], str(entity.pk))

    def test_names_nothing_by_empty_texts(self):
        assert ref_of(None) == NO_ENTITY == EntityRef("", "")

    def test_takes_a_reference_for_what_it_is(self):
        assert ref_of(EntityRef("testapp.order", "1")) == EntityRef("testapp.order", "1")

    def test_names_a_proxy_as_its_model(self, order):
        assert ref_of(OrderProxy.objects.get()) == ref_of(order)

    def test_names_what_a_request_gives_as_its_user(self, order):
        """``request.user`` is an object that stands for the account and loads it when asked."""
        assert ref_of(SimpleLazyObject(lambda: order)) == ref_of(order)

    @pytest.mark.parametrize("given", [str, lambda key: key.hex, lambda key: str(key).upper()])
    def test_names_a_key_as_it_is_read(self, given):
        parcel = Parcel()

        assert ref_of(Parcel(id=given(parcel.id))) == ref_of(parcel)

    @pytest.mark.parametrize(
        "wrong",
        [Order(), Order(pk="abc"), Parcel(id=""), Country(code=""), Country(code="x" * (MAX_ID + 1)), "x", Order],
    )
    def test_refuses_what_has_no_proper_key(self, wrong):
        with pytest.raises(WrongEntity):
            ref_of(wrong)


def about(label):
    """A timeline about a model."""

    class About(Timeline):
        name = label.rpartition(".")[2].lower()
        entity = label

        @task()
        def work(self, entity): ...

    return About


class TestFamilyOf:
    @pytest.mark.parametrize(
        ("model", "family"),
        [
            (Order, [Order]),
            (OrderProxy, [Order]),
            (Reseller, [Reseller, Customer, Account]),
            (EmployeeProxy, [Employee, Account, Badge]),
        ],
    )
    def test_is_the_model_and_its_parents(self, model, family):
        assert family_of(model) == family


class TestRefOfAChild:
    @pytest.mark.parametrize(
        ("known", "named"),
        [
            ([], "testapp.reseller"),
            (["testapp.Account"], "testapp.account"),
            (["testapp.Account", "testapp.Customer"], "testapp.customer"),
            (["testapp.Order"], "testapp.reseller"),
        ],
    )
    def test_goes_by_the_nearest_model_that_a_timeline_is_about(self, known, named):
        with only_timelines(*map(about, known)):
            assert ref_of(Reseller(pk=7)) == EntityRef(named, "7")

    def test_goes_by_the_model_asked_for(self):
        assert ref_of(Reseller(pk=7), "testapp.customer") == EntityRef("testapp.customer", "7")

    def test_goes_by_its_own_where_that_is_not_of_its_family(self):
        assert ref_of(Reseller(pk=7), "testapp.order") == EntityRef("testapp.reseller", "7")

    @pytest.mark.parametrize("model", [Employee, EmployeeProxy])
    def test_takes_the_key_of_that_parent(self, model):
        with only_timelines(about("testapp.Badge")):
            assert ref_of(model(account_ptr_id=1, badge_ptr_id=2)) == EntityRef("testapp.badge", "2")

    def test_refuses_one_that_is_not_saved(self):
        with only_timelines(about("testapp.Badge")), pytest.raises(WrongEntity):
            ref_of(Employee(account_ptr_id=1))


class TestModelOf:
    @pytest.mark.parametrize(("model", "label"), LABELS.items())
    def test_finds_the_model(self, model, label):
        assert model_of(label) is model

    @pytest.mark.parametrize("label", ["", "testapp", "testapp.gone", "gone.order"])
    def test_is_none_for_what_is_not_installed(self, label):
        assert model_of(label) is None


@pytest.mark.parametrize("read", [load_entities, lock_entities])
class TestLoadAndLockEntities:
    def test_find_each_under_its_reference(self, read, entity):
        assert read([ref_of(entity)], using="default") == {ref_of(entity): entity}

    def test_leave_out_what_is_not_there(self, read, order):
        refs = [
            ref_of(order),
            EntityRef("testapp.order", "999"),
            EntityRef("testapp.order", "no number"),
            EntityRef("testapp.parcel", "no uuid"),
            EntityRef("testapp.gone", "1"),
            NO_ENTITY,
        ]

        assert read(refs, using="default") == {ref_of(order): order}

    @pytest.mark.parametrize("key", [10**40, -(10**40), 2**63])
    def test_take_a_number_that_no_column_has_room_for_as_not_there(self, read, key, order):
        there, gone = ref_of(order), EntityRef("testapp.order", str(key))

        assert set(read([gone, there], using="default")) == {there}

    def test_ask_once_for_each_model(self, read, db, django_assert_num_queries):
        entities = [*(Order.objects.create() for _ in range(5)), *(Parcel.objects.create() for _ in range(5))]

        with django_assert_num_queries(2):
            found = read(map(ref_of, entities * 2), using="default")

        assert set(found.values()) == set(entities)


class TestKeysOf:
    def test_converts_ids_to_what_the_key_is(self, entity):
        assert keys_of(type(entity), [ref_of(entity)]) == [entity.pk]

    def test_passes_over_what_cannot_be_a_key(self):
        assert keys_of(Order, [EntityRef("testapp.order", "1"), EntityRef("testapp.order", "x")]) == [1]


class TestNaming:
    @pytest.mark.parametrize("model", [ScheduledTask, TimelineRun, Event])
    def test_finds_the_rows_of_an_entity_only(self, entity, now, model, make_task):
        columns = {
            ScheduledTask: {
                "task_key": "a.b",
                "max_attempts": 1,
                "nominal_at": now,
                "scheduled_at": now,
                "created_at": now,
            },
            TimelineRun: {"timeline": "a", "started_at": now},
            Event: {"name": "a", "occurred_at": now, "recorded_at": now},
        }[model]
        label, key = ref_of(entity)
        if model is ScheduledTask:
            columns["state"] = "scheduled"
        mine = model.objects.create(entity_label=label, entity_id=key, **columns)
        other = model.objects.create(entity_label="testapp.other", entity_id=key, **columns)
        system = model.objects.create(**columns)

        assert list(model.objects.filter(naming(entity))) == [mine]
        assert list(model.objects.for_entity(EntityRef("testapp.other", key))) == [other]
        assert list(model.objects.for_entity(None)) == [system]
