from django.apps import AppConfig


class ShopConfig(AppConfig):
    """It has no models."""

    name = "tests.django_tasks.shop"
    label = "tasks_shop"
