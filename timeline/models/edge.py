"""``Edge``: a move that the table of a machine has. The database refuses all other moves."""

from __future__ import annotations

from django.db import models

from timeline.ids import uuid7


class Edge(models.Model):
    """A move from one state of a machine to another. Edges are added from the code, and never removed automatically."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    timeline = models.CharField(max_length=50)
    from_state = models.CharField(max_length=50)
    to_state = models.CharField(max_length=50)

    class Meta:
        db_table = "timeline_edge"
        constraints = [
            models.UniqueConstraint(fields=["timeline", "from_state", "to_state"], name="timeline_edge_once")
        ]

    def __str__(self) -> str:
        return f"{self.timeline}: {self.from_state} → {self.to_state}"
