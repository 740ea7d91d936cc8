"""Events: what the database refuses of them by itself."""

import pytest

from tests.models.refusing import Refusal


class TestEvents:
    def test_are_once_for_each_key(self, make_event, named):
        make_event(key="k", **named)

        with Refusal("timeline_event_once_per_key", r"UNIQUE.*event.key$"):
            make_event(key="k", **named)

    def test_without_a_key_may_be_many(self, make_event, named):
        make_event(**named)

        assert make_event(**named).pk

    @pytest.mark.parametrize("other", [{"name": "other"}, {"entity_id": "another"}, {"key": "l"}], ids=str)
    def test_with_another_name_entity_or_key_are_others(self, make_event, named, other):
        make_event(key="k", **named)

        assert make_event(**{"key": "k"} | named | other).pk
