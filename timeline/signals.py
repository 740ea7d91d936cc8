"""What the package announces to whoever listens; sent after the commit of the transaction that made it true."""

from __future__ import annotations

from django.dispatch import Signal

# Rows became due that no poll has seen yet. Argument: ``using``, the alias of their database. A hint, no more: a poll finds
# them all the same.
work_due = Signal()
