"""The demo's command and clock."""

import os

from django.apps import AppConfig
from django.contrib import admin


class DemoConfig(AppConfig):
    """The demo."""

    name = "project.demo"

    def ready(self) -> None:
        """Leave room: the pages of the admin are shown beside others."""
        if "DEMO_CLOCK" in os.environ:
            admin.site.enable_nav_sidebar = False
