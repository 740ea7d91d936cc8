"""A timeline whose handler fails with a message that quotes its payload."""

from __future__ import annotations

from timeline import Timeline, task


class Flaky(Timeline):
    """Fails the first time."""

    entity = "testapp.Order"

    @task()
    def work(self, order):
        raise ValueError(f"IBAN {self.task.payload['iban']} is closed")
