"""An entity, and what atomic handlers write."""

from django.db import models


class Subject(models.Model):
    """What tasks are about."""

    due_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"subject {self.pk}"


class Effect(models.Model):
    """Written by a handler in the transaction of its outcome."""

    task = models.CharField(max_length=36)
    attempt = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"effect of {self.task}"
