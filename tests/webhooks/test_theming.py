"""Where a theme of the admin has a class and a frame of its own, the pages of webhooks have them: else fields have no look."""

import sys
from importlib import reload
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.contrib.admin import ModelAdmin

from timeline.webhooks import theming
from timeline.webhooks.admin import DeliveryAdmin, EndpointAdmin


@pytest.fixture
def unfold(monkeypatch):
    """As if django-unfold were installed, with this class for admins."""

    class OfTheTheme(ModelAdmin): ...

    monkeypatch.setitem(apps.app_configs, "unfold", SimpleNamespace(name="unfold", path=""))
    monkeypatch.setitem(sys.modules, "unfold.admin", SimpleNamespace(ModelAdmin=OfTheTheme))
    yield OfTheTheme
    monkeypatch.undo()
    reload(theming)


class TestTheClassOfTheAdmins:
    def test_is_the_themes_own_where_there_is_one(self, unfold):
        reload(theming)

        assert theming.Themed is unfold
        assert theming.FRAME == "admin/timeline/unfold.html"

    def test_is_djangos_where_there_is_none(self):
        assert theming.Themed is ModelAdmin
        assert theming.FRAME == "admin/base_site.html"
        assert issubclass(EndpointAdmin, theming.Themed)
        assert issubclass(DeliveryAdmin, theming.Themed)
