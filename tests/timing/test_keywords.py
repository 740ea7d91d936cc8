"""Keywords that what a timeline is declared with does not take."""

import pytest

from timeline import (
    Limit,  # of limits
    Retry,
    Timeline,
    after,
    after_run,
    approval,
    at,
    before,
    created,
    cron,
    daily,
    each_of,
    every,
    hourly,
    monthly,
    on,
    task,
    wait_for,
    weekly,
    window,
)
from timeline.exceptions import DefinitionError

UNKNOWN = [
    (after, (), "second", "Did you mean 'seconds'?"),
    (before, ("ends_at",), "day", "Did you mean 'days'?"),
    (at, ("ends_at",), "days", "A distance goes with after() or before()."),
    (at, ("ends_at",), "colour", "Known: none."),
    (each_of, (after,), "hours", "A distance goes with after() or before()."),
    (every, (), "hour", "Did you mean 'hours'?"),
    (on, ("OPEN",), "minute", "Did you mean 'minutes'?"),
    (wait_for, ("paid",), "keys", "Did you mean 'key'?"),
    (approval, ("refund",), "withn", "Did you mean 'within'?"),
    (window, (), "holiday", "Did you mean 'holidays'?"),
    (hourly, (), "minutes", "Did you mean 'minute'?"),
    (daily, ("09:00",), "zones", "Did you mean 'zone'?"),
    (weekly, ("mon 09:00",), "catchup", "Did you mean 'catch_up'?"),
    (monthly, (1, "09:00"), "overlaps", "Did you mean 'overlap'?"),
    (cron, ("* * * * *",), "colour", "Known: catch_up, expression, once_per, overlap, within, zone."),
    (created, (), "colour", "Known: none."),
    (after_run, (Timeline,), "end", "Did you mean 'ended'?"),
    (Retry, (), "max_attempt", "Did you mean 'max_attempts'?"),
    (Limit, (3,), "keys", "Did you mean 'key'?"),  # of limits
]


@pytest.mark.parametrize(
    ("function", "given", "keyword", "remedy"), UNKNOWN, ids=lambda value: getattr(value, "__name__", None)
)
class TestKnownKeywords:
    def test_names_what_is_not_taken_and_what_may_be_meant(self, function, given, keyword, remedy):
        with pytest.raises(DefinitionError) as refused:
            function(*given, **{keyword: 1})

        assert str(refused.value).endswith(f", which {function.__name__}() does not take. {remedy}")
        assert f"has {keyword}= in line " in str(refused.value)


class TestWhere:
    def test_is_the_class_and_the_line(self):
        with pytest.raises(DefinitionError, match=r"^Trial: has second= in line \d+, which after\(\) does") as refused:

            class Trial(Timeline):
                @task(after(second=10))
                def remind(self):
                    return None

        assert refused.value.timeline == "Trial"
        assert f"in line {refused.traceback[1].lineno + 1}," in str(refused.value)

    def test_is_the_module_outside_of_a_class(self):
        with pytest.raises(DefinitionError, match=rf"^{__name__}: has second= in line"):
            after(second=10)


class TestByPlace:
    def test_a_name_of_what_has_none_is_told_to_be_left_out(self):
        with pytest.raises(DefinitionError, match=r"Give it without its name, before all others: before\(anchor, …\)"):
            before(anchor="ends_at", days=5)


class TestArguments:
    """What is left out, or given without its name, is a mistake as well."""

    @pytest.mark.parametrize(
        ("function", "given", "options", "said"),
        [
            (before, (), {"days": 3}, 'takes a field of the entity first. Write before("ends_at", days=5).'),
            (at, (), {}, 'takes a field of the entity first. Write at("ends_at").'),
            (each_of, (), {}, "misses an argument: 'task'. Write each_of(task)."),
            (daily, (), {}, "misses an argument: 'at'. Write daily(at)."),
            (wait_for, ("paid",), {}, "misses an argument: 'within'. Write wait_for(…, within=…)."),
            (created, ("user",), {}, "has too many positional arguments. Write created()."),
            (every, (1, 2), {}, "has too many positional arguments. Write every()."),
        ],
        ids=lambda value: getattr(value, "__name__", None),
    )
    def test_are_asked_for(self, function, given, options, said):
        with pytest.raises(DefinitionError) as refused:
            function(*given, **options)

        assert f"{function.__name__}() in line " in str(refused.value)
        assert str(refused.value).endswith(said)
