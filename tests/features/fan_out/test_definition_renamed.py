"""A task that is fanned out, under a new name."""

from __future__ import annotations

from timeline import Timeline, after, each_of, task


class TestWas:
    def test_may_be_of_a_task_that_is_fanned_out(self):
        class Paying(Timeline):
            entity = "testapp.Order"

            @task(after(days=1))
            def share(self, order):
                self.fan_out(self.pay_each, ["a"])

            @task(each_of(share), was="pay")
            def pay_each(self, order): ...

        Paying().share("order")
