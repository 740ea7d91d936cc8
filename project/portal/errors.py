"""What goes wrong at the portal, by what is to be done about it."""

from __future__ import annotations


class PortalError(Exception):
    """Trying again later may help."""


class PortalTimeout(PortalError):
    """It did not answer in time: what was asked for may have been done, or not."""


class PortalBusy(PortalError):
    """It asks us to come back later: too many calls, or it is closed just now."""


class SlotGone(PortalError):
    """Somebody else has taken the appointment."""


class BadLogin(Exception):
    """It does not know the name, or the password."""


class Captcha(Exception):
    """It wants to know whether somebody is there."""


class Unheard(Exception):
    """It answered what nobody has heard before: somebody has to look."""
