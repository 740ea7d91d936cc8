"""Answers of requests that carry a key of their own: taken once, kept for a day, deleted a bounded number at a time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from timeline.clocks import MachineTime
from timeline.exceptions import KeyReused
from timeline.models import Answer
from timeline.operations.repeated_requests import claim_key, forget_answers, keep_answer

A_DAY = timedelta(hours=24)
A_MINUTE = timedelta(minutes=1)

pytestmark = pytest.mark.django_db


@pytest.fixture
def answered():
    """Keep answers that were made so long ago: ``answered(A_DAY)``; their keys are ``0``, ``1`` …"""

    def make(*ages):
        rows = [
            Answer(key=str(number), fingerprint="f", status=200, headers={}, body="{}", made_at=MachineTime(-age))
            for number, age in enumerate(ages)
        ]
        Answer.objects.bulk_create(rows)

    return make


def kept():
    return sorted(Answer.objects.values_list("pk", flat=True))


class TestClaimKey:
    def test_takes_one_that_is_new(self):
        assert claim_key("k", "f", using="default") is None

    def test_gives_what_was_answered(self):
        claim_key("k", "f", using="default")
        keep_answer("k", status=201, headers={"ETag": '"1"'}, body='{"ä": "\\u0000"}', using="default")

        answer = claim_key("k", "f", using="default")

        assert (answer.status, answer.headers, answer.body) == (201, {"ETag": '"1"'}, '{"ä": "\\u0000"}')

    def test_refuses_another_request(self):
        claim_key("k", "f", using="default")

        with pytest.raises(KeyReused) as refused:
            claim_key("k", "g", using="default")
        assert refused.value.field == "Idempotency-Key"

    def test_takes_anew_what_is_no_longer_kept(self, answered):
        answered(A_DAY + A_MINUTE, A_DAY - A_MINUTE)

        assert claim_key("0", "g", using="default") is None
        assert claim_key("1", "f", using="default").status == 200
        assert claim_key("0", "g", using="default").status == 0  # Taken just now.


class TestForgetAnswers:
    def test_deletes_what_is_older_than_a_day(self, answered):
        answered(A_DAY + A_MINUTE, A_DAY - A_MINUTE, timedelta(0))

        assert forget_answers(using="default") == 1
        assert kept() == ["1", "2"]
        assert forget_answers(using="default") == 0

    def test_takes_no_more_than_the_limit_the_oldest_first(self, answered):
        answered(*(A_DAY + number * A_MINUTE for number in (2, 4, 1, 3)))

        assert forget_answers(limit=2, using="default") == 2
        assert kept() == ["0", "2"]

    def test_takes_as_many_queries_for_a_thousand_as_for_ten(self, answered, django_assert_num_queries):
        for count in (10, 1000):
            answered(*[2 * A_DAY] * count)
            with django_assert_num_queries(4):  # With the savepoint that the test's own transaction makes of its.
                assert forget_answers(using="default") == count
