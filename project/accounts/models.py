"""``User``: an account of the chat product."""

from __future__ import annotations

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models
from django.utils.translation import gettext_lazy as _


class UserManager(BaseUserManager["User"]):
    """Makes accounts."""


class User(AbstractBaseUser, PermissionsMixin):
    """
    Someone who embeds the chat on a website. Signs up by e-mail address; a signed link, not a password, opens the account.
    Those who run the site are ``is_staff`` and have a password, for the admin.

    ``script_seen_at`` is when the chat script last called from the website.
    """

    email = models.EmailField(_("email address"), unique=True)
    website = models.CharField(_("website"), max_length=200)
    is_active = models.BooleanField(_("active"), default=True)
    is_staff = models.BooleanField(_("staff status"), default=False)
    signed_up_at = models.DateTimeField(_("signed up at"))
    trial_ends_at = models.DateTimeField(_("trial ends at"))
    payment_configured_at = models.DateTimeField(_("payment configured at"), null=True, blank=True)
    trial_closed_at = models.DateTimeField(_("trial closed at"), null=True, blank=True)
    script_seen_at = models.DateTimeField(_("script seen at"), null=True, blank=True)

    objects = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"

    class Meta:
        verbose_name = _("user")
        verbose_name_plural = _("users")

    def __str__(self) -> str:
        return self.email
