"""The class and the frame of pages of the admin, also where a theme has its own: without these, their fields have no look."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from django.apps import apps
from django.contrib import admin

IS_UNFOLD: Final = apps.is_installed("unfold")
FRAME: Final = "admin/timeline/unfold.html" if IS_UNFOLD else "admin/base_site.html"

if TYPE_CHECKING:
    Themed = admin.ModelAdmin[Any]
else:
    Themed = import_module("unfold.admin").ModelAdmin if IS_UNFOLD else admin.ModelAdmin
