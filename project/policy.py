"""Who may see and do what on this site: as Django's permissions say, and where customers see what is ahead of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.urls import reverse

from project.accounts.links import timeline_token
from project.accounts.models import User
from project.portal.links import booking_token
from project.portal.models import Booking
from timeline.policy import TimelinePolicy

if TYPE_CHECKING:
    from django.db.models import Model


class Policy(TimelinePolicy):
    """Leads staff to the pages of customers."""

    def customer_page(self, user: Any, entity: Model) -> str:
        """Who opens such a page acts as the customer: it is for who may change the account, or the booking."""
        if isinstance(entity, User) and user.has_perm("accounts.change_user"):
            return reverse("my-timeline", args=[timeline_token(entity)])
        if isinstance(entity, Booking) and user.has_perm("portal.change_booking"):
            return reverse("booking", args=[booking_token(entity)])
        return ""
