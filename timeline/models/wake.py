"""``Wake``: that something happened to an entity for whose events tasks of others wait."""

from __future__ import annotations

from django.db import models

from timeline.models.columns import ENTITY_IS_WHOLE, EntityColumns


class Wake(EntityColumns):
    """
    One note for polls, written in the transaction in which it happened. A poll makes those tasks due, and deletes it.

    Who emits has the lock of one entity, and could not lock tasks of others without waiting for those who have theirs.

    ``name`` and ``key`` are the event's; without a name, the entity was deleted.
    """

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=100, blank=True, default="")
    key = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        constraints = [models.CheckConstraint(condition=ENTITY_IS_WHOLE, name="timeline_wake_entity_whole")]

    def __str__(self) -> str:
        return f"{self.name or 'deleted'}: {self.entity_ref}"
