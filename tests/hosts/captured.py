"""Addresses of a host's whose prefixes capture something: a version, a tenant, a number as our own have."""

from __future__ import annotations

from django.urls import include, path, re_path

from timeline.calendar.views import CalendarView
from timeline.metrics.views import metrics
from timeline.views import health

api = include("timeline.api.urls")
ours = [
    path("api/", api),
    path("health/", health, name="health"),
    path("metrics/", metrics, name="metrics"),
    path("calendar/<str:token>.ics", CalendarView.as_view(), name="calendar"),
]

urlpatterns = [
    path("api/<str:version>/", include(("timeline.api.urls", "timeline_api"), namespace="by_version")),
    path("t/<slug:tenant>/", include((ours, "ours"), namespace="by_tenant")),
    path("shops/<int:pk>/<str:id>/", include((ours, "ours"), namespace="by_number")),
    re_path(r"^old/(\w+)/", include((ours, "ours"), namespace="unnamed")),
    path("", include("project.urls")),
]
