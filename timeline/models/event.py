"""``Event``: something that happened in the host's domain; ``Wake``: a note of it for polls."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from timeline.ids import uuid7
from timeline.models.columns import ENTITY_IS_WHOLE, EntityColumns, in_range
from timeline.models.entities import EntityRef
from timeline.models.kin import about_entity


class EventQuerySet(models.QuerySet["Event"]):
    def for_entity(self, entity: models.Model | EntityRef | None) -> EventQuerySet:
        """Events of this entity, by any name in its family; None: events of no entity."""
        return self.filter(about_entity(entity, using=self.db))


class Event(EntityColumns):
    """One domain event. With a key, it is recorded once; without a key, each time."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=100)
    key = models.CharField(max_length=200, blank=True, default="")
    payload = models.JSONField(default=dict, blank=True)
    actor = models.CharField(max_length=150, blank=True, default="")
    occurred_at = models.DateTimeField()
    recorded_at = models.DateTimeField()

    objects = models.Manager.from_queryset(EventQuerySet)()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["entity_label", "entity_id", "name", "key"],
                condition=~Q(key=""),
                name="timeline_event_once_per_key",
            ),
            models.CheckConstraint(condition=ENTITY_IS_WHOLE, name="timeline_event_entity_whole"),
            models.CheckConstraint(condition=in_range("occurred_at", "recorded_at"), name="timeline_event_in_range"),
        ]
        indexes = [
            models.Index(fields=["entity_label", "entity_id", "name", "recorded_at"], name="timeline_event_recorded")
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.entity_ref}"


class Wake(EntityColumns):
    """
    A note for polls, which make the tasks due and delete it; no ``name``: the entity was deleted.

    An ``emit`` has locked one entity; for tasks of others, it would wait for their transactions.
    """

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=100, blank=True, default="")
    key = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        constraints = [models.CheckConstraint(condition=ENTITY_IS_WHOLE, name="timeline_wake_entity_whole")]

    def __str__(self) -> str:
        return f"{self.name or 'deleted'}: {self.entity_ref}"
