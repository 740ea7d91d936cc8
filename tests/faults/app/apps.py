"""The app."""

from django.apps import AppConfig


class FaultsConfig(AppConfig):
    """What runs while things break."""

    name = "tests.faults.app"
    label = "faults"
    default_auto_field = "django.db.models.BigAutoField"
