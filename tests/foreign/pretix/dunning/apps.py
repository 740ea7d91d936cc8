"""What pretix wants to know of a plugin."""

from __future__ import annotations

from django.apps import AppConfig


class Dunning(AppConfig):
    """Reminds people of orders that they have not paid."""

    name = "dunning"
    verbose_name = "Dunning"

    class PretixPluginMeta:
        """As pretix shows it."""

        name = "Dunning"
        author = "Somebody"
        version = "1"
        category = "FEATURE"
        description = "Reminds people of orders that they have not paid."
        visible = True
