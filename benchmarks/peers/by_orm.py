"""The job about an entity of its own, by Django's ORM. To be imported after Django is set up."""

from __future__ import annotations

from django.db.models import F

from benchmarks.models import Member


def entity(number: int) -> None:
    """Count the job's own entity up."""
    Member.objects.filter(pk=number).update(counter=F("counter") + 1)
