"""A function of Django's tasks, as any package may bring some: it knows nothing of timelines."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import django

from project.accounts.models import User

task = import_module("django.tasks" if django.VERSION >= (6, 0) else "django_tasks").task


@task  # type: ignore[untyped-decorator]  # Django's, or that of a package.
def export_account(user_id: int) -> dict[str, Any]:
    """Gather what the site knows of a customer."""
    user = User.objects.get(pk=user_id)
    dates = ("signed_up_at", "trial_ends_at", "payment_configured_at", "script_seen_at")
    known = {name: getattr(user, name) for name in dates if getattr(user, name) is not None}
    return {"email": user.email, "website": user.website, **{name: at.isoformat() for name, at in known.items()}}
