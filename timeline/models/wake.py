"""``Wake``: something happened to an entity for whose events tasks of other entities wait."""

from __future__ import annotations

from django.db import models

from timeline.models.columns import ENTITY_IS_WHOLE, EntityColumns


class Wake(EntityColumns):
    """
    A note for polls, written in the transaction in which it happened. A poll makes the tasks due, and deletes the note.

    An ``emit`` has locked one entity only. It could not lock tasks of other entities without waiting for their transactions.

    ``name`` and ``key`` are those of the event; without a name, the entity was deleted.
    """

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=100, blank=True, default="")
    key = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        constraints = [models.CheckConstraint(condition=ENTITY_IS_WHOLE, name="timeline_wake_entity_whole")]

    def __str__(self) -> str:
        return f"{self.name or 'deleted'}: {self.entity_ref}"
