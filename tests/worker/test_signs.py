"""Signs of this process: one every few seconds, however many messages it works off."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import OperationalError

from timeline.models import Sign
from timeline.timing import EARLIEST
from timeline.worker.heartbeat import keep_giving, seconds_left

pytestmark = pytest.mark.django_db


@pytest.fixture
def worker():
    """A name that nobody has had."""
    return f"worker:{uuid4().hex}"


class TestKeepGiving:
    def test_gives_one_and_then_none_for_a_while(self, worker, django_assert_num_queries):
        keep_giving(worker, using="default")

        with django_assert_num_queries(0):
            keep_giving(worker, using="default")

        assert Sign.objects.get().worker == worker
        assert 0 < seconds_left(worker, using="default") <= 3

    def test_gives_another_when_it_is_time(self, worker, settings):
        keep_giving(worker, using="default")
        Sign.objects.update(seen_at=EARLIEST)
        settings.TIMELINE = {"SILENCE": timedelta(microseconds=4)}

        keep_giving(worker, using="default")

        assert Sign.objects.get().seen_at > EARLIEST

    def test_gives_none_for_nobody(self, django_assert_num_queries):
        with django_assert_num_queries(0):
            keep_giving("", using="default")

    def test_that_failed_is_to_be_tried_again(self, worker, monkeypatch):
        def fail(*_given, **_named):
            raise OperationalError("away")

        with monkeypatch.context() as away:
            away.setattr("timeline.worker.heartbeat.give_sign", fail)
            with pytest.raises(OperationalError):
                keep_giving(worker, using="default")

        assert seconds_left(worker, using="default") == 0
        keep_giving(worker, using="default")
        assert Sign.objects.exists()
