"""A host with two databases that have tasks: an API and an admin site for each."""

from __future__ import annotations

from django.urls import include, path

from tests.admin.second_site import urlpatterns as with_two_sites
from timeline.api.urls import routes

urlpatterns = [
    path("api/other/", include((routes("other"), "timeline_api"), namespace="other_timeline_api")),
    *with_two_sites,
]
