"""What tests of limits share: who has a place begins, what was begun is run, and who holds what."""

from __future__ import annotations

from timeline.dispatch.poll import stage
from timeline.engine.groups import run_begun
from timeline.features.limits.claims import begin_limited
from timeline.features.limits.places import limited_kinds
from timeline.models import ScheduledTask


def begin(task_key, now, **options):
    """Begin tasks of a kind that have a place, as a worker does."""
    return [
        attempt
        for kind in limited_kinds([task_key], using="default")
        for attempt in begin_limited(kind, most=100, worker="w", now=now, using="default", **options)
    ]


def finish(attempts, now):
    """Run what was begun."""
    return run_begun(attempts, clock=lambda: now, using="default")


def stage_all(now):
    """Let what is due be available."""
    stage(limit=100, now=now, using="default")


def held(key):
    """The places of a key that are held, by number."""
    return sorted(ScheduledTask.objects.filter(limit_key=key, slot__gt=0).values_list("slot", flat=True))
