"""Wagtail's admin and pages; Django's admin and our API beside them."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.urls import include, path
from wagtail import urls as wagtail_urls
from wagtail.admin import urls as wagtail_admin_urls

urlpatterns = [
    path("django-admin/", admin.site.urls),
    path("cms/", include(wagtail_admin_urls)),
    *([] if settings.ALONE else [path("api/v1/", include("timeline.api.urls"))]),
    path("", include(wagtail_urls)),
]
