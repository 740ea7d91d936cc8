"""``Hold``: what the database refuses, and what it is called."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError
from django.utils import translation

from timeline.models import Hold

pytestmark = pytest.mark.django_db


@pytest.fixture
def make(now):
    def make(**columns):
        columns = {"scope": "task", "target": "trial.remind", "reason": "x", "created_at": now, **columns}
        return Hold.objects.create(**columns)

    return make


class TestHold:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"scope": "row"},
            {"then": "wait"},
            {"target": ""},
            {"scope": "everything"},
            {"scope": "entity", "target": ""},
            {"scope": "entity", "target": "", "entity_label": "accounts.user"},
            {"entity_label": "accounts.user", "entity_id": "1"},
        ],
    )
    def test_names_one_thing(self, make, wrong):
        with pytest.raises(IntegrityError):
            make(**wrong)

    def test_is_lifted_before_it_is_released(self, make, now):
        with pytest.raises(IntegrityError):
            make(released_at=now)

    def test_is_called_by_what_it_holds(self, make):
        entity = {"scope": "entity", "target": "", "entity_label": "accounts.user", "entity_id": "7"}

        assert str(make()) == "hold of trial.remind"
        assert make(**entity).what == "accounts.user 7"
        with translation.override("de"):
            assert make(scope="everything", target="").what == "alles"


class TestQuestions:
    def test_tell_open_ones_from_those_that_are_over(self, make, now):
        hour = timedelta(hours=1)
        held, ahead = make(), make(until=now + hour)
        come, lifted = make(until=now), make(lifted_at=now)
        make(lifted_at=now, released_at=now)

        assert set(Hold.objects.open()) == {held, ahead, come, lifted}
        assert set(Hold.objects.over(now)) == {come, lifted}
        assert Hold.objects.open().oldest_first().first() == held
