"""The entities of the jobs that each have one of their own, as Django sees them. Whoever measures makes the table."""

from __future__ import annotations

from django.db import models


class Member(models.Model):
    """Somebody whom exactly one job is about."""

    id = models.IntegerField(primary_key=True)
    email = models.TextField()
    counter = models.IntegerField()

    class Meta:
        app_label = "benchmarks"
        db_table = "bench_member"
        managed = False

    def __str__(self) -> str:
        return self.email
