"""Each move, by each implementation, alone and among others: its row and its log are as the rules say, column by column."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as bounded
from hypothesis import strategies as st

from tests.asking import WHOLE
from tests.store.checking import COLUMNS, check
from tests.store.rules import KEPT, RULES
from tests.store.ways import WAYS, examples

pytestmark = pytest.mark.django_db

few = bounded(
    max_examples=6 if WHOLE else 4,
    phases=[Phase.generate],  # What differs is named; a smaller example would say no more.
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
BY_KIND = [pytest.param(way, kind, id=f"{way}: {kind}") for way in WAYS for kind in way.kinds]


class TestRules:
    def test_are_about_each_column_once(self):
        assert sorted([*RULES, *KEPT]) == sorted(COLUMNS)


class TestWay:
    @pytest.mark.parametrize(("way", "kind"), BY_KIND)
    @few
    @given(data=st.data())
    def test_makes_a_move_as_the_rules_say(self, way, kind, data):
        check(way, *data.draw(examples(way, kind)))

    @pytest.mark.parametrize("way", WAYS, ids=str)
    @bounded(few, max_examples=12 if WHOLE else 8)
    @given(data=st.data())
    def test_makes_different_moves_together_and_leaves_other_rows_alone(self, way, data):
        check(way, *data.draw(examples(way)))
