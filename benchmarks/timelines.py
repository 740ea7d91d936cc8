"""What the benchmarks let run."""

from __future__ import annotations

from project.accounts.models import User
from timeline import Timeline, task


class Nothing(Timeline):
    """Does nothing, so that what is measured is what we do around it."""

    entity = "accounts.User"

    @task(atomic=False)
    def plain(self, user: User) -> None:
        """Hold no transaction."""

    @task()
    def in_transaction(self, user: User) -> None:
        """Share a transaction with the outcome."""
