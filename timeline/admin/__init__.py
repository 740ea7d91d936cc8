"""The admin: upcoming events, a task, an entity's timeline, and what an operator may do there."""

from django.contrib import admin

from timeline.admin.mixins import TimelineAdminMixin
from timeline.admin.tasks import TaskAdmin
from timeline.models import ScheduledTask

__all__ = ["TaskAdmin", "TimelineAdminMixin"]

admin.site.register(ScheduledTask, TaskAdmin)
