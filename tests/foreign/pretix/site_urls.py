"""Django's admin and our API, which pretix's own addresses leave no place for."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("operations/admin/", admin.site.urls),
    path("operations/api/v1/", include("timeline.api.urls")),
]
