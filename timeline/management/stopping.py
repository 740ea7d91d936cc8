"""Work in a loop until a signal says stop."""

from __future__ import annotations

import gc
import signal

from django.core.management.base import CommandError

from timeline.exceptions import NotRunHere
from timeline.worker.loop import Loop


def work_until_stopped(loop: Loop) -> None:
    """
    Work; stop cleanly on SIGTERM and SIGINT, which afterwards do what they did before.

    Raises:
        CommandError: if nothing of the database may be run here.
    """
    before = {number: signal.signal(number, lambda *_: loop.stop()) for number in (signal.SIGTERM, signal.SIGINT)}
    gc.freeze()  # What is loaded by now stays. To look through it for garbage would hold up tasks for some 50 ms each time.
    try:
        loop.work()
    except NotRunHere as error:
        raise CommandError(str(error)) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
