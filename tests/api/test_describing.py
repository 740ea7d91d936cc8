"""Two documents at once: ours and one of the host's, each with its own settings."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest
from django.urls import include, path
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import _load_enum_name_overrides
from drf_spectacular.settings import spectacular_settings
from drf_spectacular.views import SpectacularAPIView
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.permissions import AllowAny
from rest_framework.test import APIRequestFactory, force_authenticate

from project.accounts.models import User
from timeline.api.base import TimelineAPI
from timeline.api.documents import SchemaView
from timeline.api.schema import SETTINGS, described


class ShirtSerializer(serializers.Serializer):
    """What only the host knows."""

    size = serializers.ChoiceField([("s", "small"), ("l", "large")], allow_null=True)


class Shirts(GenericAPIView):
    """A view of the host's."""

    schema = AutoSchema()
    serializer_class = ShirtSerializer

    def get(self, request): ...


def only_shirts(endpoints, **_extra):
    """A hook of the host's."""
    Shop.meanwhile()
    return [endpoint for endpoint in endpoints if endpoint[3].cls is Shirts]


class Shop(SpectacularAPIView):
    """The host's document, with settings of its own."""

    permission_classes = (AllowAny,)
    custom_settings: ClassVar = {
        "TITLE": "shop",
        "VERSION": "7",
        "OAS_VERSION": "3.0.3",
        "ENUM_NAME_OVERRIDES": {"Size": [("s", "small"), ("l", "large")]},
        "PREPROCESSING_HOOKS": ["tests.api.test_describing.only_shirts"],
    }
    meanwhile: ClassVar = staticmethod(lambda: None)


class SlowSerializer(serializers.Serializer):
    """Lets something happen in the middle of our document."""

    def get_fields(self):
        Slow.meanwhile()
        return super().get_fields()


class Slow(TimelineAPI):
    """A view of the host's below our address."""

    meanwhile: ClassVar = staticmethod(lambda: None)

    @described(operation_id="slow", responses=SlowSerializer)
    def get(self, request): ...


urlpatterns = [
    path("api/v1/slow/", Slow.as_view()),
    path("api/v1/", include("timeline.api.urls")),
    path("shirts/", Shirts.as_view()),
]


def ours():
    """Ask for our document, without a database."""
    request = APIRequestFactory().get("/api/v1/schema/")
    force_authenticate(request, User(email="ada@example.com"))
    return SchemaView.as_view()(request).data


def theirs():
    """Ask for the host's."""
    return Shop.as_view()(APIRequestFactory().get("/shop/")).data


def in_another_thread(ask):
    """Ask from there, and wait for the answer."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(ask).result(30)


@pytest.fixture(autouse=True)
def _urls(settings):
    settings.ROOT_URLCONF = __name__


class TestTwoDocumentsAtOnce:
    def test_ours_is_itself_while_the_hosts_is_made(self, monkeypatch):
        ours_alone, theirs_alone = ours(), theirs()
        answers = []
        monkeypatch.setattr(Shop, "meanwhile", staticmethod(lambda: answers.append(in_another_thread(ours))))

        shop = theirs()

        assert answers == [ours_alone]
        assert shop == theirs_alone
        assert (shop["openapi"], shop["info"]["title"], list(shop["paths"])) == ("3.0.3", "shop", ["/shirts/"])

    def test_the_hosts_is_itself_while_ours_is_made(self, monkeypatch):
        ours_alone, theirs_alone = ours(), theirs()
        answers = []
        monkeypatch.setattr(Slow, "meanwhile", staticmethod(lambda: answers.append(in_another_thread(theirs))))

        document = ours()

        assert answers
        assert all(shop == theirs_alone for shop in answers)
        assert document == ours_alone
        assert (document["openapi"], document["info"]["title"]) == ("3.1.0", "timeline")
        assert "/shirts/" not in document["paths"]

    def test_choices_have_the_names_that_each_gives_them(self):
        """Also where ours is made first: the package remembers the names it used."""
        _load_enum_name_overrides.cache_clear()

        assert "State" in ours()["components"]["schemas"]
        assert "Size" in theirs()["components"]["schemas"]
        assert "State" in ours()["components"]["schemas"]


class TestTheSitesSettings:
    def test_count_where_ours_say_nothing(self, settings):
        settings.SPECTACULAR_SETTINGS = {"TITLE": "shop", "SERVERS": [{"url": "https://shop.example"}]}

        document = ours()

        assert document["info"]["title"] == "timeline"
        assert document["servers"] == [{"url": "https://shop.example"}]

    def test_are_what_they_were_when_ours_is_made(self):
        before = {name: getattr(spectacular_settings, name) for name in SETTINGS}

        ours()

        assert {name: getattr(spectacular_settings, name) for name in SETTINGS} == before
        assert before["TITLE"] == ""
