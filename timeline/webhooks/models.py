"""``Endpoint``, ``Delivery`` and ``Attempt``: whom to tell, what there is to tell, and how each try went."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from timeline.ids import uuid7
from timeline.models.columns import EntityColumns
from timeline.webhooks.retry import PAUSED_AFTER

if TYPE_CHECKING:
    from uuid import UUID

MAX_URL: Final = 500
MAX_ANSWER: Final = 2048  # Bytes of an answer that are kept.
MAX_ERROR: Final = 300
BOTH_FOR: Final = timedelta(hours=24)  # So long after a rotation, both secrets sign.


class Ordered(models.TextChoices):
    """What is sent one after the other."""

    ENTITY = "entity", _("what is about the same entity")
    ALL = "all", pgettext_lazy("timeline", "everything")
    NO = "no", pgettext_lazy("timeline", "nothing")


class Disabled(models.TextChoices):
    """Why nothing is sent to an endpoint."""

    OPERATOR = "operator", pgettext_lazy("timeline", "by a person")
    GONE = "gone", pgettext_lazy("timeline", "it answered 410: gone")
    FAILING = "failing", pgettext_lazy("timeline", "it has failed for five days")


class Endpoint(models.Model):
    """
    Where deliveries are sent.

    ``failures`` are those since the last delivery that arrived, and ``failing_since`` is when the first of them was. After five
    it is paused: one delivery at a time is tried, from ``probe_at`` on, and the first that arrives lets all others go. Before
    ``quiet_until`` nothing is sent: it has asked for that, which is no failure of its.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    url = models.CharField(pgettext_lazy("timeline", "URL"), max_length=MAX_URL)
    description = models.CharField(pgettext_lazy("timeline", "description"), max_length=200, blank=True, default="")
    topics = models.JSONField(_("what it is told"), default=list)
    ordered = models.CharField(
        pgettext_lazy("timeline", "in order"),
        max_length=6,
        choices=Ordered.choices,
        default=Ordered.ENTITY,
        db_default=Ordered.ENTITY,
    )
    secret = models.TextField(editable=False)
    previous_secret = models.TextField(editable=False, blank=True, default="")
    rotated_at = models.DateTimeField(
        pgettext_lazy("timeline", "secret changed at"), editable=False, null=True, blank=True
    )
    created_at = models.DateTimeField(pgettext_lazy("timeline", "created at"), editable=False)
    failures = models.PositiveIntegerField(_("failures in a row"), editable=False, default=0)
    failing_since = models.DateTimeField(
        pgettext_lazy("timeline", "failing since"), editable=False, null=True, blank=True
    )
    probe_at = models.DateTimeField(editable=False, null=True, blank=True)
    quiet_until = models.DateTimeField(editable=False, null=True, blank=True)
    disabled_at = models.DateTimeField(pgettext_lazy("timeline", "disabled at"), editable=False, null=True, blank=True)
    disabled_code = models.CharField(
        _("disabled because"), max_length=8, choices=Disabled.choices, editable=False, blank=True, default=""
    )
    disabled_reason = models.CharField(
        pgettext_lazy("timeline", "reason"), max_length=200, editable=False, blank=True, default=""
    )

    class Meta:
        db_table = "timeline_webhooks_endpoint"
        verbose_name = pgettext_lazy("timeline", "endpoint")
        verbose_name_plural = pgettext_lazy("timeline", "endpoints")

    def __str__(self) -> str:
        return self.description or f"{self.host} #{self.pk.hex[-6:]}"

    @property
    def host(self) -> str:
        """What its URL says to everybody: what stands behind the host may be a secret."""
        try:
            return urlsplit(self.url).hostname or "?"
        except ValueError:
            return "?"

    @property
    def masked_url(self) -> str:
        """What is shown for its URL to who may not change it."""
        return f"{self.host}/…"

    @property
    def is_enabled(self) -> bool:
        """Whether deliveries are written and sent."""
        return self.disabled_at is None

    @property
    def is_paused(self) -> bool:
        """Whether one delivery at a time is tried, as those before failed."""
        return self.is_enabled and self.failures >= PAUSED_AFTER

    def has_two_secrets(self, now: datetime) -> bool:
        """Whether the secret before the last rotation signs as well."""
        return bool(self.previous_secret) and self.rotated_at is not None and now < self.rotated_at + BOTH_FOR


class State(models.TextChoices):
    """Where a delivery is."""

    WAITING = "waiting", pgettext_lazy("timeline", "waiting")
    DELIVERED = "delivered", pgettext_lazy("timeline", "delivered")
    FAILED = "failed", pgettext_lazy("timeline", "given up")
    CANCELLED = "cancelled", pgettext_lazy("timeline", "cancelled")


class Code(models.TextChoices):
    """Why a delivery was cancelled or given up."""

    ENDPOINT = "endpoint", _("its endpoint was disabled")
    OPERATOR = "operator", pgettext_lazy("timeline", "by a person")
    LATE = "late", _("it has not arrived within three days")


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    """Questions asked of deliveries."""

    def waiting(self) -> DeliveryQuerySet:
        """Those still to be sent."""
        return self.filter(state=State.WAITING)

    def locked(self) -> DeliveryQuerySet:
        """Lock the rows, but those that somebody else has locked: they are passed over."""
        return self.select_for_update(no_key=True, skip_locked=True)


class Delivery(EntityColumns):
    """
    One message to one endpoint. ``source`` is the entry of a run, or the task, that it tells of.

    ``body`` is JSON, the same at each try. What has the same ``order_key`` is sent one after the other, by ``id``.
    ``leased_until`` is machine time, all else is story time.
    """

    id = models.BigAutoField(primary_key=True)
    endpoint = models.ForeignKey(
        Endpoint,
        on_delete=models.CASCADE,
        related_name="deliveries",
        db_index=False,
        verbose_name=pgettext_lazy("timeline", "endpoint"),
    )
    source = models.UUIDField()
    topic = models.CharField(pgettext_lazy("timeline", "topic"), max_length=200)
    order_key = models.CharField(max_length=201, blank=True, default="")
    body = models.TextField(pgettext_lazy("timeline", "body"))
    state = models.CharField(
        pgettext_lazy("timeline", "state"), max_length=9, choices=State.choices, default=State.WAITING
    )
    code = models.CharField(
        pgettext_lazy("timeline", "reason"), max_length=8, choices=Code.choices, blank=True, default=""
    )
    attempts = models.PositiveIntegerField(pgettext_lazy("timeline", "attempts"), default=0)
    created_at = models.DateTimeField(pgettext_lazy("timeline", "created at"))
    due_at = models.DateTimeField(pgettext_lazy("timeline", "due at"))
    give_up_at = models.DateTimeField(pgettext_lazy("timeline", "given up at"))
    ended_at = models.DateTimeField(pgettext_lazy("timeline", "ended at"), null=True, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    token = models.UUIDField(null=True, blank=True)
    status = models.PositiveSmallIntegerField(_("status of the answer"), null=True, blank=True)
    error = models.CharField(pgettext_lazy("timeline", "error"), max_length=MAX_ERROR, blank=True, default="")

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        db_table = "timeline_webhooks_delivery"
        verbose_name = pgettext_lazy("timeline", "delivery")
        verbose_name_plural = pgettext_lazy("timeline", "deliveries")
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "source"], name="timeline_webhooks_once"),
            models.CheckConstraint(
                condition=Q(state=State.WAITING, ended_at__isnull=True)
                | ~Q(state=State.WAITING) & Q(ended_at__isnull=False),
                name="timeline_webhooks_ended",
            ),
        ]
        indexes = [
            models.Index(
                fields=["endpoint", "due_at", "id"], condition=Q(state=State.WAITING), name="timeline_webhooks_due"
            ),
            models.Index(
                fields=["endpoint", "order_key", "id"], condition=Q(state=State.WAITING), name="timeline_webhooks_first"
            ),
            models.Index(fields=["endpoint", "created_at"], name="timeline_webhooks_of"),
            models.Index(fields=["ended_at"], condition=~Q(state=State.WAITING), name="timeline_webhooks_ended_at"),
            # Most arrive, and those are not in it: lists find the few others in the order of their ids.
            models.Index(
                fields=["state", "id"],
                condition=Q(state__in=sorted([State.FAILED, State.CANCELLED])),
                name="timeline_webhooks_missed",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.topic} #{self.pk}"

    @property
    def message_id(self) -> str:
        """``webhook-id``: the same at each try and each replay."""
        return message_id(self.endpoint_id, self.source)


def message_id(endpoint: UUID, source: UUID) -> str:
    """Name what one endpoint is told of one thing."""
    return f"msg_{endpoint.hex}_{source.hex}"


class SenderSign(models.Model):
    """One row a process that sends. ``seen_at`` is machine time: when it gave its last sign."""

    name = models.CharField(max_length=100, primary_key=True)
    seen_at = models.DateTimeField()

    class Meta:
        db_table = "timeline_webhooks_sender"
        verbose_name = pgettext_lazy("timeline", "sender")
        verbose_name_plural = pgettext_lazy("timeline", "senders")

    def __str__(self) -> str:
        return f"{self.name} at {self.seen_at}"


class Attempt(models.Model):
    """One try of a delivery, and what came of it. ``answer`` is the first 2 KiB as text."""

    id = models.BigAutoField(primary_key=True)
    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="tries", db_index=False)
    number = models.PositiveIntegerField()
    at = models.DateTimeField()
    duration_ms = models.PositiveIntegerField()
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    answer = models.TextField(blank=True, default="")
    error = models.CharField(max_length=MAX_ERROR, blank=True, default="")

    class Meta:
        db_table = "timeline_webhooks_attempt"
        verbose_name = pgettext_lazy("timeline", "attempt")
        verbose_name_plural = pgettext_lazy("timeline", "attempts")
        indexes = [models.Index(fields=["delivery", "id"], name="timeline_webhooks_tries")]

    def __str__(self) -> str:
        return f"{self.number}: {self.status or self.error}"
