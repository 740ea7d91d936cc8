"""Django's signals, as a host sends them: save, delete, fixtures, migrations."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core import serializers
from django.core.management import call_command
from django.db import transaction
from django.db.migrations.state import ProjectState
from django.db.models.signals import post_delete, post_save, pre_delete, pre_save
from django.test.utils import isolate_apps

from tests.testapp.models import (
    Account,
    Customer,
    CustomerProxy,
    Effect,
    Folder,
    Leaf,
    Order,
    OrderProxy,
    Page,
    Parcel,
    Reseller,
    Story,
)
from tests.triggers import drop_trigger
from timeline import Timeline, after, at, created, task
from timeline.exceptions import WrongEntity
from timeline.lifecycle import State
from timeline.models import LogEntry, ScheduledTask, TimelineRun
from timeline.receivers import on_migrate
from timeline.store.triggers import missing_triggers
from timeline.testing import autostart, only_timelines


class Delivery(Timeline):
    entity = "testapp.Order"
    starts_on = created()

    @task(at("ships_at"))
    def ship(self, order):
        return None

    @task(after(days=1))
    def pack(self, order):
        return None


@pytest.fixture(autouse=True)
def _story(clock, now):
    clock.set(now)
    with only_timelines(Delivery):
        yield


class TestOnSave:
    @pytest.mark.parametrize("model", [Order, OrderProxy])
    def test_starts_a_run_for_an_inserted_row(self, model, now):
        order = model.objects.create()

        run = TimelineRun.objects.get()
        assert (run.entity_ref, run.started_at) == (("testapp.order", str(order.pk)), now)

    def test_starts_none_for_a_row_saved_again(self):
        with autostart(False):
            order = Order.objects.create()

        order.save()

        assert not TimelineRun.objects.exists()

    def test_starts_none_for_rows_of_fixtures(self, now):
        [loaded] = serializers.deserialize("python", [{"model": "testapp.order", "pk": 7, "fields": {"note": "x"}}])

        loaded.save()

        assert Order.objects.get().pk == 7
        assert not TimelineRun.objects.exists()

    def test_moves_no_rows_for_fixtures(self, now):
        order = Order.objects.create(ships_at=now + timedelta(days=3))
        order.ships_at = now + timedelta(days=9)
        [loaded] = serializers.deserialize("json", serializers.serialize("json", [order]))

        loaded.save()

        assert ScheduledTask.objects.get(task_key="delivery.ship").scheduled_at == now + timedelta(days=3)

    def test_starts_none_for_rows_of_migrations(self):
        historical = ProjectState.from_apps(Order._meta.apps).apps.get_model("testapp", "Order")

        historical.objects.create()

        assert Order.objects.exists()
        assert not TimelineRun.objects.exists()

    def test_passes_over_what_no_timeline_is_about(self, django_assert_num_queries):
        with django_assert_num_queries(1):
            Parcel.objects.create()

    def test_passes_over_the_rows_of_the_app_itself(self, make_task):
        make_task()

        assert ScheduledTask.objects.count() == 1

    def test_moves_the_rows_with_their_anchor(self, now):
        order = Order.objects.create(ships_at=now + timedelta(days=3))
        order.ships_at = now + timedelta(days=9)
        order.save(update_fields=["ships_at"])

        assert ScheduledTask.objects.get(task_key="delivery.ship").scheduled_at == now + timedelta(days=9)

    def test_lets_be_a_save_of_other_fields(self, now, django_assert_num_queries):
        order = Order.objects.create(ships_at=now + timedelta(days=3))
        order.ships_at, order.note = now + timedelta(days=9), "x"

        with django_assert_num_queries(1):
            order.save(update_fields=["note"])

        assert ScheduledTask.objects.get(task_key="delivery.ship").scheduled_at == now + timedelta(days=3)

    def test_is_undone_with_the_save(self, now):
        order = Order.objects.create(ships_at=now + timedelta(days=3))

        with transaction.atomic():
            order.ships_at = now + timedelta(days=9)
            order.save()
            transaction.set_rollback(True)

        assert ScheduledTask.objects.get(task_key="delivery.ship").scheduled_at == now + timedelta(days=3)


class Welcome(Timeline):
    entity = "testapp.Account"
    starts_on = created()

    @task(after(days=1))
    def greet(self, account): ...


class Visit(Timeline):
    entity = "testapp.Customer"
    starts_on = created()

    @task(after(days=1))
    def greet(self, customer): ...


class TestASaveWithinASave:
    @pytest.fixture
    def _saved_again(self):
        """A receiver of the host's that is connected before ours, as in its models: it saves again what was just inserted."""

        def save_again(*, instance, created, **_extra):
            if created:
                instance.note = "seen"
                instance.save()

        post_save.disconnect(sender=Customer, dispatch_uid="timeline.on_save")
        post_save.connect(save_again, sender=Customer)
        with only_timelines(Welcome, Visit):
            yield
        post_save.disconnect(save_again, sender=Customer)

    @pytest.mark.usefixtures("_saved_again")
    def test_starts_none_for_a_parent_that_was_there(self, db):
        with autostart(False):
            account = Account.objects.create()

        Customer(account_ptr=account).save()

        assert list(TimelineRun.objects.values_list("timeline", flat=True)) == ["visit"]

    @pytest.mark.usefixtures("_saved_again")
    def test_starts_one_for_a_parent_that_is_new(self, db):
        Customer.objects.create()

        assert set(TimelineRun.objects.values_list("timeline", flat=True)) == {"visit", "welcome"}


class TestOnDelete:
    @pytest.mark.parametrize("how", ["instance", "queryset", "proxy"])
    def test_ends_what_was_planned(self, how):
        order = Order.objects.create()
        {
            "instance": order.delete,
            "queryset": Order.objects.all().delete,
            "proxy": OrderProxy.objects.get().delete,
        }[how]()

        assert TimelineRun.objects.get().end_reason == "the entity was deleted"
        assert ScheduledTask.objects.get().state == State.CANCELLED

    def test_leaves_the_others(self):
        first, second = Order.objects.create(), Order.objects.create()

        first.delete()

        assert TimelineRun.objects.open().get().entity_id == str(second.pk)

    def test_is_undone_with_the_delete(self):
        order = Order.objects.create()

        with transaction.atomic():
            order.delete()
            transaction.set_rollback(True)

        assert TimelineRun.objects.get().is_open
        assert ScheduledTask.objects.get().state == State.SCHEDULED


class TestAKeyThatRowsCannotHold:
    """Nothing can be about it."""

    @pytest.fixture(params=["x" * 101, ""], ids=["long", "empty"])
    def url(self, request):
        class Ending(Timeline):
            entity = "testapp.Page"
            starts_on = "page.made"

            @task(at("goes_at"))
            def end(self, page): ...

        with only_timelines(Ending):
            yield request.param

    @pytest.mark.parametrize("model", [Page, Story])
    def test_keeps_no_row_from_being_saved_and_deleted(self, url, model, now):
        page = model.objects.create(url=url)
        page.goes_at = now
        page.save()
        Page.objects.get().save()
        page.delete()

        assert not Page.objects.exists()

    def test_keeps_no_date_from_being_saved(self, url):
        page = Page.objects.create(url=url)
        page.goes_at = datetime(9500, 1, 1, tzinfo=UTC)

        page.save()

        assert Page.objects.get().goes_at == page.goes_at

    def test_is_refused_where_a_run_is_to_start(self, url):
        class Beginning(Timeline):
            entity = "testapp.Page"
            starts_on = created()

            @task(after(days=1))
            def check(self, page): ...

        with only_timelines(Beginning):
            with pytest.raises(WrongEntity, match="empty or over 100 characters"), transaction.atomic():
                Page.objects.create(url=url)
            with autostart(False):
                Page.objects.create(url=url)

        assert Page.objects.count() == 1


class TestFollow:
    """Who hears a model takes its fast delete: only models that timelines are about, and their families, are heard."""

    def test_leaves_other_models_their_fast_delete(self, django_assert_num_queries):
        Effect.objects.bulk_create([Effect(name="x") for _ in range(500)])

        with django_assert_num_queries(1):
            Effect.objects.all().delete()

    def test_leaves_other_models_theirs_where_they_go_with_another(self, django_assert_num_queries):
        """Rows that are deleted with another one, too: one statement for the children, whatever their number."""
        folder = Folder.objects.create()
        Leaf.objects.bulk_create([Leaf(folder=folder) for _ in range(500)])

        with django_assert_num_queries(2):
            folder.delete()

    def test_does_not_hear_other_models_at_all(self):
        heard = [signal.has_listeners(Effect) for signal in (pre_save, post_save, pre_delete, post_delete)]

        assert heard == [False] * 4

    @pytest.mark.parametrize("model", [Account, Customer, CustomerProxy, Reseller])
    def test_hears_saves_of_the_whole_family_of_an_entity(self, model):
        class Visits(Timeline):
            entity = "testapp.Customer"

            @task(at("visits_at"))
            def visit(self, customer): ...

        with only_timelines(Visits):
            heard = [signal.has_listeners(model) for signal in (pre_save, post_save)]

        assert heard == [True, True]

    @isolate_apps("tests.testapp")
    def test_hears_models_that_are_declared_later(self, now):
        class LateProxy(Order):
            class Meta:
                proxy = True
                app_label = "testapp"

        class LateChild(Order):
            class Meta:
                app_label = "testapp"

        order = LateProxy.objects.create(ships_at=now + timedelta(days=3))
        LateProxy.objects.get().delete()

        assert TimelineRun.objects.get().entity_ref == ("testapp.order", str(order.pk))
        assert TimelineRun.objects.get().end_reason == "the entity was deleted"
        assert [signal.has_listeners(LateChild) for signal in (pre_save, post_save)] == [True, True]

    def test_does_not_hear_models_of_migrations(self):
        historical = ProjectState.from_apps(Order._meta.apps).apps.get_model("testapp", "Order")

        heard = [signal.has_listeners(historical) for signal in (pre_save, post_save, post_delete)]

        assert heard == [False] * 3

    def test_hears_each_model_once(self, django_assert_num_queries):
        order = Order.objects.create()
        with only_timelines(Delivery), only_timelines(Delivery):
            order.delete()

        assert LogEntry.objects.filter(reason_code="entity_gone").count() == 1


class TestOnMigrate:
    def test_puts_back_the_triggers(self):
        drop_trigger("guard_log")
        assert missing_triggers("default") == ["guard_log"]

        call_command("migrate", verbosity=0)

        assert missing_triggers("default") == []

    def test_puts_them_back_after_a_flush_too(self):
        drop_trigger("guard_log")

        on_migrate(using="default")

        assert missing_triggers("default") == []

    @pytest.mark.django_db(transaction=True)
    def test_installs_them_when_django_migrates_and_not_when_it_flushes(self, monkeypatch):
        installed = []
        monkeypatch.setattr("timeline.receivers.install_triggers", installed.append)

        call_command("flush", interactive=False, allow_cascade=True, verbosity=0)
        assert installed == []

        call_command("migrate", verbosity=0)
        assert installed == ["default"]
