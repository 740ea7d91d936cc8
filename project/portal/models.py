"""What the site keeps of bookings. How far one has come, its timeline knows; ``state`` shows it."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from project.portal.states import S
from timeline.models import StateField, known_states


class Booking(models.Model):
    """
    An appointment that somebody wants.

    ``reference`` is what the portal knows it by, the same in every call. ``offers`` are the appointments found last, as ISO
    8601; ``slot`` is the one of them that is wanted, and ``hold`` what the portal calls its reservation of it: both may be
    empty. ``opens_at`` is when the portal is to open again, ``search_until`` when it is of no use any more to look.
    """

    reference = models.CharField(_("reference"), max_length=20, unique=True)
    name = models.CharField(_("name"), max_length=100)
    email = models.EmailField(_("e-mail address"))
    latest_hour = models.PositiveSmallIntegerField(_("latest hour that suits"), default=24)
    offers = models.JSONField(_("appointments found"), blank=True, default=list)
    slot = models.CharField(_("appointment"), max_length=30, blank=True, default="")
    hold = models.CharField(_("reservation"), max_length=40, blank=True, default="")
    has_documents = models.BooleanField(_("documents are there"), default=False)
    has_paid = models.BooleanField(_("fee is paid"), default=False)
    opens_at = models.DateTimeField(_("the portal opens at"), null=True, blank=True)
    search_until = models.DateTimeField(_("looked for until"))
    created_at = models.DateTimeField(_("created at"))
    state = StateField(_("state"), db_index=True)

    class Meta:
        verbose_name = _("booking")
        verbose_name_plural = _("bookings")
        constraints = [known_states(S)]
        permissions = [("resolve_booking", _("Can resolve bookings that need an operator"))]

    def __str__(self) -> str:
        return f"{self.reference} ({self.name})"


class Secret(models.Model):
    """
    What no row of a timeline may have: a password or a code, of one booking. Events carry its number only.

    It is deleted when it is of no more use. A site in earnest would encrypt it, or leave it to a vault.
    """

    class Kind(models.TextChoices):
        """What it is."""

        PASSWORD = "password", _("password")
        CODE = "code", _("code")

    booking = models.ForeignKey(Booking, models.CASCADE)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    value = models.CharField(max_length=100)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["booking", "kind"], name="one_secret_a_booking_and_kind")]

    def __str__(self) -> str:
        return f"{self.kind} of booking {self.booking_id}"
