"""Users with a UUID as their key."""

from __future__ import annotations

import uuid

from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    """Somebody who edits pages."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
