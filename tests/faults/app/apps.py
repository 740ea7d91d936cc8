"""The app."""

from django.apps import AppConfig


class FaultsConfig(AppConfig):
    """What runs while things break."""

    name = "tests.faults.app"
    label = "faults"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from tests.faults.app.machines import Visit  # noqa: PLC0415 (models come first)
        from timeline.registry import registry  # noqa: PLC0415

        registry.register(Visit)
