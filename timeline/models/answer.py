"""``Answer``: what a request with a key of its own was answered, so that the same request again is answered alike."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db import models

from timeline.clocks import MachineTime

KEPT: Final = timedelta(hours=24)


class AnswerQuerySet(models.QuerySet["Answer"]):
    """Questions asked of answers."""

    def no_longer_kept(self) -> AnswerQuerySet:
        """Those whose keys may be used for other requests again."""
        return self.filter(made_at__lt=MachineTime(-KEPT, once=True))


class Answer(models.Model):
    """
    One row a request that has changed something.

    ``key`` is a hash of who asked and of the key they sent, ``fingerprint`` one of what they asked for. ``status`` is 0 until
    there is an answer, which others never see: both are written in one transaction. ``headers`` has those that the answer
    adds, ``body`` is what its body is made of, JSON as text: what is shown of it depends on who asks. ``made_at`` is machine
    time.
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
