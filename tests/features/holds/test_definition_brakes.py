from __future__ import annotations

from datetime import timedelta

import pytest

from timeline import Timeline, task
from timeline.exceptions import DefinitionError

DAY = timedelta(days=1)


def declare(**options):
    class Closing(Timeline):
        entity = "testapp.Order"
        name = "closing_case"

        @task(**options)
        def close(self, order): ...

    return Closing


class TestBrakeProblems:
    @pytest.mark.parametrize(
        ("options", "problem", "remedy"),
        [
            ({"destructive": 1}, "has destructive = 1", "True or False"),
            ({"destructive": True, "park_above": 0}, "has park_above = 0", "from 1 to 1,000,000"),
            ({"destructive": True, "park_above": -1}, "has park_above = -1", "from 1 to 1,000,000"),
            ({"destructive": True, "park_above": True}, "has park_above = True", "a whole number"),
            ({"destructive": True, "park_above": "9"}, "has park_above = '9'", "a whole number"),
            ({"destructive": True, "park_above": 10**6 + 1}, "has park_above = 1000001", "from 1 to 1,000,000"),
            ({"destructive": True}, "is destructive, and has no park_above", "park_above=100"),
            ({"park_above": 9}, "has park_above, and is not destructive", "destructive=True"),
            ({"park_within": DAY}, "has park_within, and no park_above", "leave it out"),
            ({"destructive": True, "park_above": 9, "park_within": 0 * DAY}, "has park_within = ", "7 days at most"),
            ({"destructive": True, "park_above": 9, "park_within": 8 * DAY}, "has park_within = ", "7 days at most"),
            ({"destructive": True, "park_above": 9, "park_within": 60}, "has park_within = 60", "a positive timedelta"),
        ],
    )
    def test_names_class_method_and_remedy(self, options, problem, remedy):
        with pytest.raises(DefinitionError) as caught:
            declare(**options)

        assert str(caught.value).startswith("Closing.close")
        assert problem in str(caught.value)
        assert remedy in str(caught.value)

    @pytest.mark.parametrize(
        ("tags", "problem", "remedy"),
        [
            ("mail", "has tags = 'mail', which is one text", "tags=('mail',)"),
            (["mail"], "has tags = ['mail']", 'tags=("mail",)'),
            (None, "has tags = None", 'tags=("mail",)'),
            (("Mail",), "has a tag 'Mail'", "Use small letters"),
            (("",), "has a tag ''", "a letter first"),
            (("m" * 51,), "has a tag 'mmm", "50 characters at most"),
            ((7,), "has a tag 7", "Use small letters"),
            ((["mail"],), "has a tag ['mail']", "Use small letters"),
            (("mail\n",), "has a tag 'mail\\n'", "Use small letters"),
            (("mail", "mail"), "has the tag 'mail' twice", "Give it once"),
        ],
    )
    def test_names_what_is_wrong_with_tags(self, tags, problem, remedy):
        with pytest.raises(DefinitionError) as caught:
            declare(tags=tags)

        assert problem in str(caught.value)
        assert remedy in str(caught.value)

    def test_takes_tags(self):
        assert declare(tags=("mail", "third-party")).definition.tasks["close"].options.tags == ("mail", "third-party")
        assert declare().definition.tasks["close"].options.tags == ()

    def test_takes_what_is_right(self):
        known = declare(destructive=True, park_above=9, park_within=7 * DAY).definition.tasks["close"]

        assert (known.options.park_above, known.options.park_within) == (9, 7 * DAY)
        assert declare().definition.tasks["close"].options.park_above is None
