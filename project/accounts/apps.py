"""The accounts of the site."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AccountsConfig(AppConfig):
    """Accounts: who has signed up, and how their trial stands."""

    name = "project.accounts"
    label = "accounts"
    verbose_name = _("Accounts")
