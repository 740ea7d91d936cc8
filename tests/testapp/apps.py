"""Entities of the tests."""

from django.apps import AppConfig


class TestappConfig(AppConfig):
    """Models with keys of every kind."""

    name = "tests.testapp"
    label = "testapp"
