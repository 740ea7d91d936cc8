"""``Edge``: a move that the table of a machine has. What is not among them, the database refuses."""

from __future__ import annotations

from django.db import models

from timeline.ids import uuid7


class Edge(models.Model):
    """From one state of a machine to another. They are added from the code, and none is removed by itself."""

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
