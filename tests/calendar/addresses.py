"""The address of calendars in these tests."""

from __future__ import annotations

from django.urls import include, path

from timeline.calendar.views import CalendarView


class Spoken(CalendarView):
    """Has titles of its own, and keeps one task to itself."""

    def title(self, task):
        return {"seating.free": "Your seat is free again"}.get(task.task_key, "")


urlpatterns = [
    path("theirs/<str:token>.ics", CalendarView.as_view(), name="their-calendar"),
    path("spoken/<str:token>.ics", Spoken.as_view(), name="spoken-calendar"),
    path("", include("project.urls")),
]
