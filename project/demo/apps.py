"""The demo's command and clock."""

from django.apps import AppConfig


class DemoConfig(AppConfig):
    """The demo."""

    name = "project.demo"
