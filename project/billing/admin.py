"""Customers, payments and books in the admin, each with the button that leads to its timeline."""

from __future__ import annotations

from django.contrib import admin

from project.billing.models import Book, Customer, Payment, Report
from timeline.admin import TimelineAdminMixin


@admin.register(Customer)
class CustomerAdmin(TimelineAdminMixin):
    """Who pays."""

    list_display = ("name", "email", "plan", "standing", "joined_at")
    list_filter = ("plan", "standing")
    search_fields = ("name", "email")
    ordering = ("pk",)


@admin.register(Payment)
class PaymentAdmin(TimelineAdminMixin):
    """What they pay."""

    list_display = ("pk", "customer", "cents", "status", "attempt_count", "completed_at")
    list_filter = ("status",)
    list_select_related = ("customer",)
    ordering = ("-pk",)


@admin.register(Book)
class BookAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """The settlements of the days."""

    list_display = ("day", "settled", "cents", "opened_at", "closed_at")
    ordering = ("-day",)


@admin.register(Report)
class ReportAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """What was reported."""

    list_display = ("kind", "period", "figures", "path", "made_at")
    list_filter = ("kind",)
    ordering = ("-pk",)
