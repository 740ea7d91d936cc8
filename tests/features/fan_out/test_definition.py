"""What a handler gives to ``self.fan_out(…)``, checked before it is remembered."""

import pytest

from timeline import Timeline, TimelineError, after, each_of, task
from timeline.exceptions import InvalidInput, NotPlainJSON, PayloadTooLarge
from timeline.features.fan_out.declaration import (
    MAX_MEGABYTES,
    MAX_OCCURRENCES,
    check_count,
    check_size,
    payloads_of,
    task_of,
)


class Base(Timeline, abstract=True):
    @task(after())
    def split(self): ...

    @task(each_of(split))
    def settle(self):
        return "base"


class Settlement(Base):
    @task(after(Base.settle))
    def report(self): ...

    def help(self): ...


class Other(Base):
    @task(each_of(Base.split))
    def settle(self):
        return "other"


class TestTaskOf:
    def test_finds_it_by_its_method_and_by_what_stands_for_it(self):
        declared = Settlement.definition.tasks["settle"]

        assert task_of(Settlement.definition, Settlement().settle) is declared
        assert task_of(Settlement.definition, Settlement.settle) is declared
        assert task_of(Settlement.definition, Base.settle) is declared

    @pytest.mark.parametrize(
        "given", [Other.settle, Other().settle, Settlement().help, print, "settle", None, Settlement]
    )
    def test_refuses_what_is_no_task_of_this_class(self, given):
        with pytest.raises(InvalidInput, match=r"is no task of this timeline\. Give one by its method") as refused:
            task_of(Settlement.definition, given)

        assert refused.value.field == "task"

    def test_refuses_a_task_that_is_not_fanned_out(self):
        with pytest.raises(InvalidInput, match=r"report is not fanned out\. Declare it with @task\(each_of"):
            task_of(Settlement.definition, Settlement().report)


class TestPayloadsOf:
    @pytest.mark.parametrize("given", [["1", "2"], ("1", "2"), iter(["1", "2"]), {"1": {}, "2": {}}])
    def test_gives_each_occurrence_its_payload(self, given):
        assert payloads_of(given) == {"1": {}, "2": {}}

    def test_gives_a_copy(self):
        payload = {"of": [1]}

        [copied] = payloads_of({"1": payload}).values()
        payload["of"].append(2)

        assert copied == {"of": [1]}

    def test_takes_as_long_a_name_as_the_column_does(self):
        assert list(payloads_of(["ü" * 100])) == ["ü" * 100]

    @pytest.mark.parametrize("given", ["1", b"1", None, 1])
    def test_refuses_what_is_no_collection_of_names(self, given):
        with pytest.raises(InvalidInput, match=r"occurrences: is a .* Give a dict from occurrence to payload"):
            payloads_of(given)

    @pytest.mark.parametrize("name", ["", "x" * 101, "\x00", "\ud800", 1, None])
    def test_refuses_what_no_column_holds(self, name):
        with pytest.raises(InvalidInput, match=r"occurrence: .* Give text of 1 to 100 characters"):
            payloads_of([name])

    def test_refuses_a_payload_that_is_no_dict(self):
        with pytest.raises(InvalidInput, match=r"payload: of 1 is a list\. Give a dict\."):
            payloads_of({"1": []})

    def test_refuses_what_json_does_not_hold(self):
        with pytest.raises(NotPlainJSON):
            payloads_of({"1": {"at": object()}})

    def test_refuses_a_large_payload(self):
        with pytest.raises(PayloadTooLarge):
            payloads_of({"1": {"text": "x" * 65_536}})

    def test_stops_reading_when_they_are_too_many(self):
        def endless():
            number = 0
            while True:
                number += 1
                yield str(number)

        with pytest.raises(InvalidInput, match="are more than 10,000"):
            payloads_of(endless())


class TestCheckCount:
    def test_takes_as_many_as_it_says(self):
        check_count(MAX_OCCURRENCES)


class TestCheckSize:
    def test_takes_as_much_as_it_says(self):
        check_size(MAX_MEGABYTES * 1024 * 1024)

        with pytest.raises(InvalidInput, match="more than 16 MiB together"):
            check_size(MAX_MEGABYTES * 1024 * 1024 + 1)


class TestInAUnitTest:
    """Where nothing runs, a handler that fans out is called as it stands."""

    def test_checks_what_is_given_and_does_nothing(self):
        settlement = Settlement()

        assert settlement.fan_out(settlement.settle, ["1"]) is None
        with pytest.raises(InvalidInput):
            settlement.fan_out(settlement.report, ["1"])

    def test_is_an_error_that_hosts_may_catch(self):
        with pytest.raises(TimelineError):
            Settlement().fan_out(Settlement.report, ["1"])
