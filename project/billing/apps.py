"""The billing of the site."""

from django.apps import AppConfig


class BillingConfig(AppConfig):
    """Billing: customers, their payments, and the books of the settlements."""

    name = "project.billing"
    label = "billing"
