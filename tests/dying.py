"""
A process that saves an entity in no transaction, and is killed between the commit of that and its signal.

``python -m tests.dying create``, or ``move <key>``: by a day.
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta
from typing import Any

import django

django.setup()

from django.db import connection  # noqa: E402 (Django is set up first)

from tests.stories.test_dying_before_the_signal import Journey  # noqa: E402
from tests.testapp.models import Order  # noqa: E402
from timeline.testing import only_timelines  # noqa: E402


def main(verb: str, key: str = "") -> None:
    """Save, and die at the next statement."""
    written: list[str] = []

    def die_after_the_write(execute: Any, sql: str, *given: Any) -> Any:
        if written:
            os.kill(os.getpid(), signal.SIGKILL)
        if sql.startswith(("INSERT", "UPDATE")):
            written.append(sql)
        return execute(sql, *given)

    with only_timelines(Journey):
        order = Order.objects.get(pk=key) if key else Order()
        order.ships_at = order.ships_at and order.ships_at - timedelta(days=1)
        with connection.execute_wrapper(die_after_the_write):
            order.save()


if __name__ == "__main__":
    main(*sys.argv[1:])
