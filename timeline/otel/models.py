"""``TraceContext``: where in which trace something was written whose effects come later."""

from __future__ import annotations

from django.db import models


class TraceContext(models.Model):
    """
    W3C's ``traceparent`` of a span: ids of a trace and of a span in it, and flags; no baggage, no state.

    ``item`` is what was written in it: an event; a run that no event began; or the first revision of a task of neither. A table
    of its own, with no foreign key: where nobody traces, nothing is written, and no other table is locked or changed for it.
    """

    item = models.UUIDField(primary_key=True, editable=False)
    traceparent = models.CharField(max_length=55)
    # By this machine's clock, as times of spans are; not story time.
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["at"], name="timeline_otel_context_at")]

    def __str__(self) -> str:
        return self.traceparent
