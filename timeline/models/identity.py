"""``Identity``: the site to which a database belongs, and the last sign of a poll."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models import Q

from timeline.clocks import MachineTime

THE_ONE = 1


class IdentityQuerySet(models.QuerySet["Identity"]):
    """Questions asked of the one row."""

    def unpolled(self, since: timedelta) -> IdentityQuerySet:
        """The row, if nobody has polled for so long, by the real clock of the database."""
        return self.filter(Q(polled_at__isnull=True) | Q(polled_at__lt=MachineTime(-since)))

    def there(self, since: timedelta) -> IdentityQuerySet:
        """The row, if the database has belonged to this site for so long."""
        return self.filter(adopted_at__lt=MachineTime(-since))


class Identity(models.Model):
    """
    One row in each database.

    ``site`` is in every copy of the database, wherever it is restored. Processes that work there must have the same name in
    ``TIMELINE["SITE"]``. ``polled_at`` is machine time.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=THE_ONE, editable=False)
    site = models.CharField(max_length=100, blank=True)
    adopted_at = models.DateTimeField()
    polled_at = models.DateTimeField(null=True, blank=True)

    objects = models.Manager.from_queryset(IdentityQuerySet)()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=THE_ONE), name="timeline_identity_one")]
        verbose_name_plural = "identities"

    def __str__(self) -> str:
        return self.site or "no site"
