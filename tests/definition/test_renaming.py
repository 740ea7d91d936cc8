"""A method that has another name now stands for the rows that it had before."""

from __future__ import annotations

import pytest

from timeline import Timeline, after, task
from timeline.exceptions import DefinitionError


class TestWas:
    def test_is_the_name_that_rows_have(self):
        class Reminding(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), was="remind")
            def remind_by_mail(self, order): ...

            @task(after(remind_by_mail, days=1))
            def close(self, order): ...

        definition = Reminding.definition
        assert list(definition.tasks) == ["remind", "close"]
        assert definition.task_key(Reminding.remind_by_mail.name) == "reminding.remind"
        assert definition.tasks["close"].when.predecessor_name == "remind"

    def test_leaves_what_it_is_called_in_code(self):
        class Reminding(Timeline):
            entity = "testapp.Order"

            @task(after(days=1), was="remind")
            def remind_by_mail(self, order):
                return f"by mail to {order}"

        assert Reminding().remind_by_mail("ada") == "by mail to ada"
        assert Reminding.remind_by_mail.bound_to(Reminding())("ada") == "by mail to ada"

    @pytest.mark.parametrize("was", ["Remind", "no-name", 7, "x" * 101])
    def test_has_to_be_a_name(self, was):
        with pytest.raises(DefinitionError, match=r"Reminding\.mail: has was = .*Use the name it had before"):

            class Reminding(Timeline):
                @task(after(days=1), was=was)
                def mail(self, order): ...

    def test_may_not_be_that_of_another_task(self):
        with pytest.raises(DefinitionError, match=r"Reminding\.mail: was 'remind', and so is another task"):

            class Reminding(Timeline):
                @task(after(days=1))
                def remind(self, order): ...

                @task(after(days=1), was="remind")
                def mail(self, order): ...

    def test_may_not_be_that_of_two(self):
        with pytest.raises(DefinitionError, match=r"Reminding\.call: was 'remind', and so is another task"):

            class Reminding(Timeline):
                @task(after(days=1), was="remind")
                def mail(self, order): ...

                @task(after(days=1), was="remind")
                def call(self, order): ...
