"""An admin site that has nothing of ours, below a prefix that captures something."""

from __future__ import annotations

from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.auth.models import Group
from django.urls import path

bare = AdminSite()
bare.register(Group, ModelAdmin)

urlpatterns = [path("<slug:tenant>/admin/", bare.urls)]
