"""What a rate may be, and what is said of a wrong one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group

from tests.testapp.models import Order
from timeline import (
    Limit,  # of limits
    Rate,
    Timeline,
    task,
)
from timeline.definition.model_fit import check_model
from timeline.exceptions import DefinitionError

FORM = 'Use text such as "100/h": 1 to 1,000, in a second (s), minute (m), hour (h) or day (d).'


def declare(rate, **options):
    class RatedCase(Timeline):
        entity = "testapp.Order"

        @task(rate=rate, **options)
        def call(self, order): ...

    return RatedCase


def ascii_of(value):
    return ascii(value)[:20]


class TestRate:
    @pytest.mark.parametrize(
        ("text", "most", "period"),
        [
            ("1/s", 1, timedelta(seconds=1)),
            ("60/m", 60, timedelta(minutes=1)),
            ("100/h", 100, timedelta(hours=1)),
            ("1000/d", 1000, timedelta(days=1)),
        ],
    )
    def test_is_read(self, text, most, period):
        assert Rate(text).read == (most, period)

    @pytest.mark.parametrize(
        "text", ["", "0/s", "1001/s", "01/s", "-1/s", "1", "1/", "/s", "1/w", "1/s ", "1.5/s", "١/s"]
    )
    def test_is_none_if_it_says_something_else(self, text):
        assert Rate(text).read is None

    def test_is_for_a_kind_or_a_key_or_a_value_of_a_field(self):
        assert [
            Rate("1/s").key_of("a.b", 7),
            Rate("1/s", "bank").key_of("a.b", 7),
            Rate("1/s", by="zone").key_of("a.b", 7),
            Rate("1/s", "bank", by="zone").key_of("a.b", 7),
        ] == ["a.b", "bank", "a.b:7", "bank:7"]

    @pytest.mark.parametrize("value", ["a\x00b", "\ud800", "\ud83d" * 999, "x" * 9_999, 7.5, None], ids=ascii_of)
    def test_has_a_key_that_any_database_can_store(self, value):
        key = Rate("1/s", by="zone").key_of("a.b", value)

        assert key.encode()
        assert "\x00" not in key
        assert len(key) <= 100
        assert key != Rate("1/s", by="zone").key_of("a.b", f"{value}.")

    def test_is_called_without_the_value_of_a_field(self):
        assert Rate("1/s", "bank", by="email").name_of("a.b") == "bank"


class TestDeclaration:
    @pytest.mark.parametrize(
        ("rate", "said"),
        [
            ("100/hour", f"has a rate of '100/hour'. Did you mean '100/h'? {FORM}"),
            ("100 / Minutes", f"has a rate of '100 / Minutes'. Did you mean '100/m'? {FORM}"),
            ("1,000/d", f"has a rate of '1,000/d'. Did you mean '1000/d'? {FORM}"),
            ("5000/h", f"has a rate of '5000/h'. {FORM}"),
            ("often", f"has a rate of 'often'. {FORM}"),
            (100, f"has rate = 100. {FORM}"),
            (Rate(5), f"has a rate of 5. {FORM}"),
            (Rate("1/s", key="k" * 101), "Use text of 100 characters at most."),
            (Rate("1/s", key="\x00"), "Use text of 100 characters at most."),
            (Rate("1/s", key="\ud800"), "Use text of 100 characters at most."),
            (Rate("1/s", by=7), "has a rate with by = 7. Name a field of the entity, as text."),
        ],
    )
    def test_refuses_what_is_no_rate_and_says_what_is(self, rate, said):
        with pytest.raises(DefinitionError) as refused:
            declare(rate)

        assert said in str(refused.value)
        assert refused.value.method == "call"

    def test_says_which_argument_is_missing(self):
        with pytest.raises(
            DefinitionError, match=r"Rate\(\) in line \d+ misses an argument: 'text'\. Write Rate\(text\)"
        ):
            Rate(by="note")

    def test_refuses_bulk(self):
        with pytest.raises(
            DefinitionError, match=r"has bulk and rate: one call takes many at once\. Leave out one of them"
        ):

            class RatedCase(Timeline):
                entity = "testapp.Order"

                @task(rate="1/s", bulk=10)
                def call(self, orders): ...

    def test_refuses_a_field_that_is_not_there(self):
        with pytest.raises(
            DefinitionError, match=r"has a rate by 'notes', which .* does not have\. Did you mean 'note'"
        ):
            check_model(declare(Rate("1/s", by="notes")).definition, Order)

    def test_refuses_a_field_that_leads_to_many(self):
        """Its value would be the same for all: they would share one rate."""
        with pytest.raises(
            DefinitionError, match=r"has a rate by 'permissions', which is no column of .* Name a field"
        ):
            check_model(declare(Rate("1/s", by="permissions")).definition, Group)

    def test_refuses_a_field_where_there_is_no_entity(self):
        with pytest.raises(DefinitionError, match="has a rate by 'note', but no entity to read it from"):

            class RatedCase(Timeline):
                @task(rate=Rate("1/s", by="note"))
                def call(self): ...

    def test_goes_with_a_limit(self):  # of limits
        assert declare("1/s", limit=Limit(1)).definition.tasks["call"].options.rate == "1/s"
