"""Where a theme of the admin has a class and a frame of its own, the pages of webhooks have them: else fields have no look."""

import sys
from importlib import reload
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.contrib.admin import ModelAdmin

from timeline.webhooks import admin_lists
from timeline.webhooks.admin import DeliveryAdmin, EndpointAdmin


@pytest.fixture
def unfold(monkeypatch):
    """As if django-unfold were installed, with this class for admins."""

    class OfTheTheme(ModelAdmin): ...

    monkeypatch.setitem(apps.app_configs, "unfold", SimpleNamespace(name="unfold", path=""))
    monkeypatch.setitem(sys.modules, "unfold.admin", SimpleNamespace(ModelAdmin=OfTheTheme))
    yield OfTheTheme
    monkeypatch.undo()
    reload(admin_lists)


class TestTheClassOfTheAdmins:
    def test_is_the_themes_own_where_there_is_one(self, unfold):
        reload(admin_lists)

        assert admin_lists.Themed is unfold
        assert admin_lists.FRAME == "admin/timeline/unfold.html"

    def test_is_djangos_where_there_is_none(self):
        assert admin_lists.Themed is ModelAdmin
        assert admin_lists.FRAME == "admin/base_site.html"
        assert issubclass(EndpointAdmin, admin_lists.Themed)
        assert issubclass(DeliveryAdmin, admin_lists.Themed)
