"""``Answer``: the answer to a request with an idempotency key, so that the same request gets the same answer again."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db import models

from timeline.clocks import MachineTime

KEPT: Final = timedelta(hours=24)


class AnswerQuerySet(models.QuerySet["Answer"]):
    """Questions asked of answers."""

    def no_longer_kept(self) -> AnswerQuerySet:
        """Answers that are too old, so that their keys may be used for other requests."""
        return self.filter(made_at__lt=MachineTime(-KEPT, once=True))


class Answer(models.Model):
    """
    One row for each request that has changed something.

    ``key`` is a hash of who asked, and of the key that they sent. ``fingerprint`` is a hash of what they asked for. ``status``
    is 0 until there is an answer. Others never see this, as both are written in one transaction. ``headers`` has the headers
    that the answer adds. ``body`` is JSON as text: the values of which the body is made, since what is shown of them depends on
    who asks. ``made_at`` is machine time.
    """

    key = models.CharField(max_length=64, primary_key=True)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    headers = models.JSONField()
    body = models.TextField()
    made_at = models.DateTimeField()

    objects = models.Manager.from_queryset(AnswerQuerySet)()

    class Meta:
        indexes = [models.Index(fields=["made_at"], name="timeline_answer_made")]

    def __str__(self) -> str:
        return f"answer {self.status} at {self.made_at}"
