"""A host with two admin sites: the second shows the tasks of another database, the third has no pages of ours."""

from __future__ import annotations

from django.contrib.admin import AdminSite, ModelAdmin
from django.urls import path

from project.urls import urlpatterns as first
from tests.testapp.models import Order
from timeline.admin import TaskAdmin, TimelineAdminMixin
from timeline.models import ScheduledTask


class OtherTasks(TaskAdmin):
    """Of the other database."""

    using = "other"


class OrderAdmin(TimelineAdminMixin, ModelAdmin):
    """An entity's own page."""


second = AdminSite("second")
second.register(ScheduledTask, OtherTasks)
third = AdminSite("third")
third.register(Order, OrderAdmin)

urlpatterns = [*first, path("second/", second.urls), path("third/", third.urls)]
