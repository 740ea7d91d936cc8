"""An app whose label is not the name of its module."""

from django.apps import AppConfig


class WarehouseConfig(AppConfig):
    """Known as ``depot``."""

    name = "tests.hosts.warehouse"
    label = "depot"
