"""Share: which kinds are taken next, and how many of each; and how many go into one message."""

import pytest

from timeline.dispatch.claim import LARGEST, Share, batch_size, shares

ONE_QUEUE = {"a": "default", "b": "default", "c": "default", "d": "mail"}


def sizes(taken):
    return {share.task_key: share.size for share in taken}


class TestShares:
    def test_are_equal_among_kinds_of_the_same_urgency(self):
        assert shares({"a": 0, "b": 0}, ONE_QUEUE, {}, most=100) == [Share("a", 0, 50), Share("b", 0, 50)]

    def test_are_all_of_the_only_kind(self):
        assert sizes(shares({"b": 7}, ONE_QUEUE, {}, most=100)) == {"b": 100}

    def test_are_of_the_most_urgent_alone(self):
        """Strictly: nothing else of the queue is taken while something more urgent is ready."""
        assert shares({"a": 0, "b": -3, "c": 5}, ONE_QUEUE, {}, most=100) == [Share("b", -3, 100)]

    def test_are_as_many_for_each_queue_whatever_is_urgent_in_another(self):
        assert sizes(shares({"a": -9, "d": 9}, ONE_QUEUE, {}, most=100)) == {"a": 100, "d": 100}

    def test_fit_into_the_room_of_the_queue(self):
        assert sizes(shares({"a": 0, "b": 0, "d": 0}, ONE_QUEUE, {"default": 10}, most=100)) == {
            "a": 5,
            "b": 5,
            "d": 100,
        }

    @pytest.mark.parametrize("room", [0, -4])
    def test_are_none_of_a_full_queue_and_all_of_another(self, room):
        assert sizes(shares({"a": 0, "d": 0}, ONE_QUEUE, {"default": room}, most=100)) == {"d": 100}

    def test_are_of_those_that_stand_first_where_there_is_not_room_for_each(self):
        assert sizes(shares({"c": 0, "a": 0, "b": 0}, ONE_QUEUE, {"default": 2}, most=100)) == {"c": 1, "a": 1}

    def test_never_add_up_to_more_than_there_is_room_for(self):
        for room in range(12):
            taken = shares({"a": 0, "b": 0, "c": 0}, ONE_QUEUE, {"default": room}, most=9)

            assert sum(share.size for share in taken) <= min(room, 9)
            assert all(share.size > 0 for share in taken)

    def test_are_none_of_nothing(self):
        assert shares({}, {}, {}, most=100) == []


class TestBatchSize:
    @pytest.mark.parametrize(
        ("seconds", "size"), [(None, 1), (60, 1), (0.2, 1), (0.05, 4), (0.001, 200), (0, LARGEST), (1e-9, LARGEST)]
    )
    def test_is_a_fifth_of_a_second_of_work(self, seconds, size):
        assert batch_size(None, seconds) == size

    @pytest.mark.parametrize("seconds", [None, 0, 60])
    def test_is_what_is_declared_where_it_is(self, seconds):
        assert batch_size(250, seconds) == 250
