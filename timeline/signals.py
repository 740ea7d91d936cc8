"""What the package announces to whoever listens; sent after the commit of the transaction that made it true."""

from __future__ import annotations

from typing import Final

from django.dispatch import Signal

# Rows became due that no poll has seen yet. Argument: ``using``, the alias of their database. A hint, no more: a poll finds
# them all the same.
work_due = Signal()

# The same for rows that become due before the next poll: one that sleeps until its next row should look at them first.
work_soon = Signal()

# Both, for other processes, on PostgreSQL: what a worker of the database listens on.
CHANNEL: Final = "timeline_due"

# A timeline was made known to a registry, which is the sender. Argument: ``label`` of its entity's model; empty for a system
# timeline.
registered = Signal()
