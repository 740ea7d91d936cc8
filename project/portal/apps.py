"""Appointments on the portal of a city."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class PortalConfig(AppConfig):
    """Bookings: what people want of the portal, and how far each has come."""

    name = "project.portal"
    label = "portal"
    verbose_name = _("Appointments")
