"""What ``on_failure`` may name, and what is refused when the class is declared."""

from __future__ import annotations

import re

import pytest

from timeline import Timeline, after, task
from timeline.exceptions import DefinitionError


def declared(given, *, when=None, again=None):
    class Job(Timeline):
        entity = "testapp.Order"

        @task()
        def other(self, order): ...

        @task(when, on_failure=again)
        def tell(self, order): ...

        @task(after(days=1), on_failure=tell if given is None else given)
        def work(self, order): ...

    return Job


class TestOnFailure:
    def test_is_a_task_or_its_name(self):
        for given in (None, "tell"):
            assert declared(given).definition.tasks["work"].options.on_failure is not None

    @pytest.mark.parametrize(
        ("given", "more", "said"),
        [
            (5, {}, "Job.work: has on_failure = 5. Give a task of the class"),
            (print, {}, "Give a task of the class that is declared above"),
            ("tel", {}, "has on_failure = 'tel', which is no task of the class. Did you mean 'tell'?"),
            ("nothing", {}, "Declare it in this class, with @task() and no schedule."),
            ("work", {}, "has itself as on_failure."),
            (
                None,
                {"when": after(days=2)},
                "has on_failure = 'tell', which has a schedule of its own. Leave its schedule out",
            ),
            (None, {"again": "other"}, "which has on_failure itself"),
        ],
        ids=str,
    )
    def test_is_refused_otherwise(self, given, more, said):
        with pytest.raises(DefinitionError, match=re.escape(said)):
            declared(given, **more)

    def test_of_another_class_is_refused(self):
        class Other(Timeline):
            entity = "testapp.Order"

            @task()
            def shout(self, order): ...

        with pytest.raises(DefinitionError, match="has on_failure = 'shout', which is no task of the class"):
            declared(Other.shout)
