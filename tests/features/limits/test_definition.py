from __future__ import annotations

import pytest
from django.contrib.auth.models import Group

from tests.testapp.models import Order
from timeline import Limit, Timeline, task
from timeline.definition.model_fit import check_model
from timeline.exceptions import DefinitionError


def declare(limit, **options):
    class Limited(Timeline):
        entity = "testapp.Order"
        name = "limited_case"

        @task(limit=limit, **options)
        def call(self, order): ...

    return Limited


class TestLimit:
    @pytest.mark.parametrize(
        ("limit", "wanted"),
        [
            (Limit(1), "a.b"),
            (Limit(1, "bank"), "bank"),
            (Limit(1, by="zone"), "a.b:7"),
            (Limit(1, "bank", by="zone"), "bank:7"),
        ],
    )
    def test_says_what_a_task_competes_for(self, limit, wanted):
        assert limit.key_of("a.b", 7) == wanted

    def test_shortens_what_is_too_long_and_tells_it_apart(self):
        limit = Limit(1, "k" * 90, by="note")

        first, second = limit.key_of("a.b", "x" * 50 + "1"), limit.key_of("a.b", "x" * 50 + "2")

        assert (len(first), len(second)) == (100, 100)
        assert first != second

    @pytest.mark.parametrize("value", ["\x00", "a\x00b", "\ud800" * 100])
    def test_takes_any_text(self, value):
        key = Limit(1, by="note").key_of("a.b", value)

        assert key.startswith("a.b:")
        assert "\x00" not in key
        assert key != Limit(1, by="note").key_of("a.b", "ab")

    @pytest.mark.parametrize(
        ("limit", "until"),
        [
            (Limit(1), "attempt"),
            (Limit(1, until="end"), "opened"),
            (Limit(1, until="end", on_discard="open"), "end"),
        ],
    )
    def test_says_until_when_a_place_is_held(self, limit, until):
        assert limit.held_until == until


class TestProblems:
    @pytest.mark.parametrize(
        "limit",
        [
            0,
            -1,
            1_001,
            True,
            "ten",
            Limit(0),
            Limit(True),
            Limit(1, "k" * 101),
            Limit(1, by=7),
            Limit(1, until="never"),
            Limit(1, until="end", on_discard="never"),
            Limit(1, on_discard="open"),
        ],
        ids=str,
    )
    def test_are_an_error_at_start_that_names_class_and_method(self, limit):
        with pytest.raises(DefinitionError, match=r"Limited\.call: has a? ?limit"):
            declare(limit)

    def test_it_is_not_combined_with_many_in_one_call(self):
        with pytest.raises(DefinitionError, match="bulk and limit"):
            declare(1, bulk=10)

    def test_a_system_timeline_has_no_field(self):
        with pytest.raises(DefinitionError, match="no entity to read it from"):

            class SystemLimited(Timeline):
                @task(limit=Limit(1, by="zone"))
                def call(self): ...

    def test_the_field_is_one_of_the_entity(self):
        class FieldLimited(Timeline):
            entity = "testapp.Order"
            name = "field_limited"

            @task(limit=Limit(1, by="portal_id"))
            def call(self, order): ...

        with pytest.raises(DefinitionError, match=r"by 'portal_id', which testapp\.order does not have"):
            check_model(FieldLimited.definition, Order)

    def test_the_field_does_not_lead_to_many(self):
        """Its value would be the same for all: they would share one limit."""

        class ManyLimited(Timeline):
            entity = "auth.Group"
            name = "many_limited"

            @task(limit=Limit(1, by="permissions"))
            def call(self, group): ...

        with pytest.raises(
            DefinitionError, match=r"by 'permissions', which is no column of auth\.group.* Name a field"
        ):
            check_model(ManyLimited.definition, Group)
