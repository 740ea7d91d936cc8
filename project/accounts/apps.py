"""The accounts of the site."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """Accounts: who has signed up, and how their trial stands."""

    name = "project.accounts"
    label = "accounts"
