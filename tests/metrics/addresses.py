"""The address of metrics in these tests."""

from __future__ import annotations

from django.urls import include, path

from timeline.metrics.views import metrics

urlpatterns = [path("metrics/", metrics, name="metrics"), path("", include("project.urls"))]
