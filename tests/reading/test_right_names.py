"""Permissions in words."""

from __future__ import annotations

import pytest

from timeline.reading.guard_words import right_in_words


class TestRightInWords:
    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("timeline.cancel_scheduledtask", "Can cancel scheduled task"),
            ("timeline.view_scheduledtask", "Can view scheduled task"),
            ("testapp.nobody_has_it", "testapp.nobody_has_it"),
            ("nowhere.view_it", "nowhere.view_it"),
            ("no dots", "no dots"),
        ],
    )
    def test_is_what_django_calls_it_else_the_name(self, name, words):
        assert right_in_words(name) == words
