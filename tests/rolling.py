"""Rolling up in tests, beside whoever else writes on the same server: what they have open is waited for."""

from __future__ import annotations

from time import monotonic, sleep
from typing import Final

from timeline.features.maintenance.figures import BATCH, roll_up
from timeline.models import LogEntry, RollUp

PATIENCE: Final = 120.0  # Seconds.


def counted(*, size: int = BATCH) -> None:
    """Count until all that is logged is in the figures."""
    deadline = monotonic() + PATIENCE
    while not _is_all_counted():
        if not _has_counted(size):
            assert monotonic() < deadline, "Somebody has a transaction open."
            sleep(0.02)


def rolled_up_once() -> None:
    """Make one call that counts, once what is open has ended; the entries are marked already."""
    deadline = monotonic() + PATIENCE
    while not _has_counted(BATCH):
        assert monotonic() < deadline, "Somebody has a transaction open."
        sleep(0.02)


def _has_counted(size: int) -> bool:
    before = _place()
    roll_up(size=size, using="default")
    return _place() != before


def _place() -> int | None:
    return RollUp.objects.values_list("counted", flat=True).first()


def _is_all_counted() -> bool:
    last = LogEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    return RollUp.objects.filter(counted__gte=last).exists()
