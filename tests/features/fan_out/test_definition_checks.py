"""What is wrong with a declared fan-out."""

from types import SimpleNamespace

import pytest

from tests.definition.test_checking import declare, declare_task, method, task_mistake
from timeline.exceptions import DefinitionError
from timeline.timing import after, each_of


class TestEachOf:
    """What is fanned out is checked as any other follow-up is, and a little more."""

    def refused(self, anchor, **others):
        error = task_mistake(method("go", each_of(anchor)), **others)
        assert error.method == "go"
        return error.problem

    def test_takes_a_task_of_the_class(self):
        split = method("split", after(days=1))

        declared = declare_task(method("go", each_of(split)), split=split)

        assert declared.definition.fanned_out == {"go"}

    @pytest.mark.parametrize("anchor", [None, "split", 5, SimpleNamespace(name=None)])
    def test_refuses_what_names_no_task(self, anchor):
        assert "names no task." in self.refused(anchor)

    def test_refuses_a_task_that_is_not_of_the_class(self):
        assert self.refused(SimpleNamespace(name="gone")) == "follows 'gone', which is not a task of this timeline."

    def test_refuses_itself(self):
        assert self.refused(SimpleNamespace(name="go")) == "follows itself by way of 'go'."

    def test_refuses_a_circle(self):
        first = method("first", after(SimpleNamespace(name="go")))

        assert "follows itself by way of" in task_mistake(method("go", each_of(first)), first=first).problem

    def test_refuses_a_task_without_a_schedule(self):
        """It gets rows by ``schedule()`` only, which are in no run."""
        split = method("split")

        assert self.refused(split, split=split) == "follows 'split', which has no schedule."

    def test_refuses_a_call_for_many(self):
        split = method("split", after(days=1), bulk=10)

        with pytest.raises(
            DefinitionError, match=r"which takes many entities in one call\. Declare 'split' without bulk"
        ):
            declare(entity="testapp.Order", split=split, go=method("go", each_of(split)))

    def test_refuses_what_is_fanned_out_itself(self):
        split = method("split", after(days=1))
        half = method("half", each_of(split))

        error = task_mistake(method("go", each_of(half)), split=split, half=half)

        assert (error.method, error.problem) == ("go", "is fanned out by 'half', which is fanned out itself.")
        assert error.remedy == "Let 'split' fan out both."

    @pytest.mark.parametrize("when", [after(days=1, ended=True), after("ends_at", ended=True)])
    def test_refuses_an_end_of_what_is_no_task(self, when):
        assert "ended=True" in task_mistake(method("go", when)).problem
