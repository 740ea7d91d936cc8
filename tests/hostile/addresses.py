"""All that we have, on one site."""

from __future__ import annotations

from django.urls import include, path

from timeline.calendar.views import CalendarView
from timeline.metrics.views import metrics

urlpatterns = [
    path("metrics/", metrics, name="metrics"),
    path("theirs/<str:token>.ics", CalendarView.as_view(), name="their-calendar"),
    path("", include("project.urls")),
]
