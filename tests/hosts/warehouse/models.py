"""What a warehouse holds."""

from django.db import models


class Crate(models.Model):
    """Is opened some day."""

    opens_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"crate {self.pk}"
