"""Where a handler must not sleep is seen when its class is declared."""

from __future__ import annotations

import time

import pytest

from timeline import Timeline, after, step, task
from timeline.exceptions import DefinitionError


class TestHandlers:
    def test_that_are_atomic_do_not_sleep(self):
        with pytest.raises(DefinitionError, match=r"^Job\.work: sleeps, and is atomic.* Give atomic=False"):

            class Job(Timeline):
                entity = "testapp.Order"

                @task(after(days=1))
                def work(self, order):
                    if order.paid:
                        self.sleep(days=2)

    def test_that_take_many_do_not_sleep(self):
        with pytest.raises(DefinitionError, match=r"^Job\.work: sleeps, and takes many entities"):

            class Job(Timeline):
                entity = "testapp.Order"

                @task(after(days=1), atomic=False, bulk=10)
                def work(self, orders):
                    self.sleep(days=2)

    def test_are_not_taken_for_others(self):
        """Other things sleep, too."""

        class Job(Timeline):
            entity = "testapp.Order"

            @task(after(days=1))
            def work(self, order):
                order.sleep(2)
                time.sleep(2)

        assert Job.definition.tasks

    def test_may_not_be_called_so(self):
        with pytest.raises(DefinitionError, match="is the name of what a handler calls on self"):

            class Job(Timeline):
                entity = "testapp.Order"

                @task(after(days=1))
                def sleep(self, order): ...


class TestSteps:
    def test_do_not_sleep(self):
        with pytest.raises(DefinitionError, match=r"^Job\.tell: sleeps in a step\."):

            class Job(Timeline):
                entity = "testapp.Order"

                @task(after(days=1), atomic=False)
                def work(self, order):
                    self.tell()

                @step
                def tell(self):
                    self.sleep(hours=1)
