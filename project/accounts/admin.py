"""Accounts in the admin. Nobody is made or deleted there: people sign up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin

from project.accounts.models import User
from timeline.admin import TimelineAdminMixin

if TYPE_CHECKING:
    from django.http import HttpRequest


@admin.register(User)
class UserAdmin(TimelineAdminMixin):
    """An account, with the button that leads to its timeline."""

    list_display = ("email", "website", "is_active", "trial_ends_at", "payment_configured_at")
    list_filter = ("is_active",)
    search_fields = ("email", "website")
    ordering = ("email",)
    fields = (
        "email",
        "website",
        "is_active",
        "trial_ends_at",
        "payment_configured_at",
        "trial_closed_at",
        "script_seen_at",
        "signed_up_at",
    )
    readonly_fields = ("email", "signed_up_at", "script_seen_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody: people sign up."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:  # type: ignore[override]
        """Nobody."""
        return False
