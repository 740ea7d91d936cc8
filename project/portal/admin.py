"""Bookings in the admin, each with the button that leads to its timeline. Secrets are not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin

from project.portal.models import Booking
from timeline.admin import TimelineAdminMixin

if TYPE_CHECKING:
    from django.http import HttpRequest


@admin.register(Booking)
class BookingAdmin(TimelineAdminMixin):
    """A booking. Nobody makes or changes one there: its machine and its applicant do."""

    list_display = ("reference", "name", "state", "slot", "created_at")
    list_filter = ("state",)
    search_fields = ("reference", "name", "email")
    ordering = ("-pk",)
    fields = (
        "reference",
        "name",
        "email",
        "state",
        "slot",
        "hold",
        "latest_hour",
        "has_documents",
        "has_paid",
        "opens_at",
        "search_until",
        "created_at",
    )
    readonly_fields = fields

    def has_add_permission(self, _request: HttpRequest) -> bool:
        """Nobody: people apply."""
        return False
