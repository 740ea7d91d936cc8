"""Plain: what an instance holds is what the column has."""

import pytest
from django.db.models import DateField, DateTimeField, Model
from django.db.models.base import ModelBase
from django.db.models.signals import post_init
from django.test.utils import isolate_apps

from tests.testapp.models import Order, Seller, Story, Trip
from timeline.models.columns import is_read_plainly, plain_column


class TestIsReadPlainly:
    @pytest.mark.parametrize("model", [Order, Story])
    def test_of_models_like_most(self, model):
        assert is_read_plainly(model)

    def test_not_of_one_with_a_manager_of_its_own(self):
        assert not is_read_plainly(Seller)

    @pytest.mark.parametrize("name", ["from_db", "__init__", "__getattribute__"])
    def test_not_where_the_host_has_a_hand_in_it(self, name, monkeypatch):
        monkeypatch.setattr(Order, name, lambda *_given, **_named: None)

        assert not is_read_plainly(Order)

    @isolate_apps("tests.testapp")
    def test_not_where_the_host_makes_instances(self):
        class OneForEachKey(ModelBase):
            def __call__(cls, *values, **named):
                return super().__call__(*values, **named)

        class Shared(Model, metaclass=OneForEachKey):  # noqa: DJ008
            class Meta:
                app_label = "testapp"

        class Counted(Model):  # noqa: DJ008
            class Meta:
                app_label = "testapp"

            def __new__(cls, *values, **named):
                return super().__new__(cls)

        assert not is_read_plainly(Shared)
        assert not is_read_plainly(Counted)

    def test_not_where_somebody_is_told_of_each(self):
        def told(**_given): ...

        post_init.connect(told, sender=Order)
        try:
            assert not is_read_plainly(Order)
        finally:
            post_init.disconnect(told, sender=Order)


class TestPlainColumn:
    def test_is_the_field(self):
        assert plain_column(Order, "ships_at", DateField, DateTimeField) is Order._meta.get_field("ships_at")

    def test_is_that_of_a_parent_as_well(self):
        assert plain_column(Story, "goes_at", DateTimeField) is not None

    def test_is_none_of_another_kind_nor_where_there_is_none(self):
        assert plain_column(Order, "ships_at", DateField) is None
        assert plain_column(Order, "gone_at", DateTimeField) is None
        assert plain_column(Trip, "state", DateTimeField) is None

    def test_is_none_that_converts_what_it_reads(self, monkeypatch):
        monkeypatch.setattr(
            Order._meta.get_field("ships_at"), "from_db_value", lambda value, *_rest: value, raising=False
        )

        assert plain_column(Order, "ships_at", DateTimeField) is None

    def test_is_none_behind_a_property(self, monkeypatch):
        monkeypatch.setattr(Order, "ships_at", property(lambda _order: None))

        assert plain_column(Order, "ships_at", DateTimeField) is None
