"""Rows by many keys, given at once."""

from datetime import date

import pytest
from django.db import models
from django.test.utils import isolate_apps

from tests.testapp.models import Country, Customer, Order, Parcel, Reseller
from timeline.dialects import Among

pytestmark = pytest.mark.django_db


@pytest.fixture(params=[Order, Parcel, Country, Customer, Reseller], ids=lambda model: model.__name__)
def rows(request):
    """Three of a kind, with keys that are numbers, UUIDs, texts, or a parent's."""
    if request.param is Country:
        return [Country.objects.create(code=code) for code in ('a"b', "c\\d", "é,{}")]
    return [request.param.objects.create() for _ in range(3)]


class TestAmong:
    def test_finds_those_it_is_given(self, rows):
        keys = [row.pk for row in rows[:2]]

        found = type(rows[0]).objects.filter(Among(keys))

        assert {row.pk for row in found} == set(keys)

    def test_finds_once_what_is_given_twice(self, rows):
        found = type(rows[0]).objects.filter(Among([rows[0].pk] * 2))

        assert [row.pk for row in found] == [rows[0].pk]

    def test_finds_nothing_by_nothing(self, rows, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert list(type(rows[0]).objects.filter(Among([]))) == []

    @pytest.mark.only_postgresql
    def test_is_one_parameter_however_many(self, rows):
        keys = [row.pk for row in rows]

        _sql, parameters = type(rows[0]).objects.filter(Among(keys)).query.sql_with_params()

        assert len(parameters) == 1

    @pytest.mark.only_postgresql
    @isolate_apps("tests.testapp")
    def test_leaves_keys_of_other_kinds_to_django(self):
        class Day(models.Model):
            day = models.DateField(primary_key=True)

            class Meta:
                app_label = "testapp"

            def __str__(self):
                return str(self.day)

        sql, parameters = Day.objects.filter(Among([date(2026, 3, 1), date(2026, 3, 2)])).query.sql_with_params()

        assert " IN (" in sql
        assert len(parameters) == 2
