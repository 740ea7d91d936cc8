"""Disable, enable and delete endpoints, rotate their secrets, and send again what was sent before."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from timeline.exceptions import InvalidInput
from timeline.payloads import check_text
from timeline.store.alerts import alert_disabled
from timeline.store.transactions import atomic
from timeline.webhooks.facts import KEPT_UP
from timeline.webhooks.models import Code, Delivery, DeliveryQuerySet, Disabled, Endpoint, State
from timeline.webhooks.secrets import encrypted, new_secret

MAX_REASON: Final = 200
MAX_COUNTED: Final = 10_000  # Beyond it, it says that there are more.


def lock_endpoints(
    keys: Iterable[UUID], *, skip_locked: bool = False, to_delete: bool = False, using: str
) -> dict[UUID, Endpoint]:
    """
    Lock endpoints in the order of their keys, and read those there. Deliveries are still written to them meanwhile.

    ``skip_locked`` leaves out what somebody else has locked; ``to_delete`` waits for writers, and lets nobody begin.
    """
    rows = Endpoint.objects.using(using).filter(pk__in=set(keys)).order_by("pk")
    return {row.pk: row for row in rows.select_for_update(no_key=not to_delete, skip_locked=skip_locked)}


def lock_keys(keys: Iterable[UUID], *, using: str) -> None:
    """The same for who reads no more of endpoints: in a migration, columns of later ones are not there yet."""
    rows = Endpoint.objects.using(using).filter(pk__in=set(keys)).order_by("pk")
    len(rows.select_for_update(no_key=True).values_list("pk", flat=True))


def lock_deliveries(deliveries: DeliveryQuerySet) -> None:
    """Lock deliveries, before attempts of theirs are written or deleted. The caller has the locks of their endpoints."""
    len(deliveries.order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True))


def disable(endpoint: Endpoint, code: Disabled, *, reason: str = "", now: datetime, using: str) -> int:
    """
    Send nothing more to a locked endpoint; how many waiting deliveries were cancelled (they can be sent again).

    People are told, unless they did it. ``reason``: what a person says of it, 200 characters at most.
    """
    check_text("reason", reason, MAX_REASON)
    with atomic(using=using):
        endpoint.disabled_at, endpoint.disabled_code, endpoint.disabled_reason = now, code, reason
        endpoint.save(using=using, update_fields=["disabled_at", "disabled_code", "disabled_reason"])
        waiting = Delivery.objects.using(using).waiting().filter(endpoint=endpoint)
        cancelled = waiting.update(
            state=State.CANCELLED, code=Code.ENDPOINT, ended_at=now, leased_until=None, token=None
        )
        if code != Disabled.OPERATOR:
            _alert(endpoint, cancelled, now, using)
    return cancelled


def _alert(endpoint: Endpoint, cancelled: int, now: datetime, using: str) -> None:
    """Tell people. The URL is left out: it may have a secret in it."""
    said = {"why": Disabled(endpoint.disabled_code).label, "count": cancelled, "id": endpoint.pk}
    text = _("%(why)s. Cancelled deliveries: %(count)d. Endpoint: %(id)s.") % said
    alert_disabled(endpoint.description or str(endpoint.pk), text, now=now, using=using)


def enable(endpoint: Endpoint, *, now: datetime, using: str) -> None:  # noqa: ARG001 (the signature of what is done to one)
    """Send to it again, from now on. What was cancelled meanwhile is sent by ``replay``."""
    as_new: dict[str, Any] = {"disabled_at": None, "disabled_code": "", "disabled_reason": "", "failures": 0}
    as_new |= {"failing_since": None, "probe_at": None, "quiet_until": None}
    for name, value in as_new.items():
        setattr(endpoint, name, value)
    endpoint.save(using=using, update_fields=[*as_new])


def rotate(endpoint: Endpoint, *, now: datetime, using: str) -> str:
    """Give an endpoint another secret, which is shown once: here. For 24 hours the one before signs as well."""
    secret = new_secret()
    endpoint.previous_secret, endpoint.secret, endpoint.rotated_at = endpoint.secret, encrypted(secret), now
    endpoint.save(using=using, update_fields=["previous_secret", "secret", "rotated_at"])
    return secret


def replay(
    endpoint: Endpoint,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    only: Iterable[int] | None = None,
    missed: bool = False,
    now: datetime,
    using: str,
) -> int:
    """
    Send again what has ended, in the order of old, with the same ``webhook-id``, by which receivers know it; how many.

    Args:
        since, until: What was written from then on, and before then; None: whenever.
        only: Primary keys of deliveries; None: all of that time.
        missed: Leave out what has arrived.

    Raises:
        InvalidInput: if the endpoint is disabled, or ``since`` is not before ``until``.
    """
    if since is not None and until is not None and since >= until:
        raise InvalidInput("until", _("it is not after since."), _("Give a later time."))
    with atomic(using=using):
        # Locked, so that nobody disables it meanwhile, and two replays come one after the other.
        endpoint = Endpoint.objects.using(using).select_for_update(no_key=True).get(pk=endpoint.pk)
        if not endpoint.is_enabled:
            raise InvalidInput("endpoint", _("nothing is sent to it: it is disabled."), _("Enable it first."))
        rows = replayable(endpoint, since=since, until=until, missed=missed, using=using)
        if only is not None:
            rows = rows.filter(pk__in=list(only))
        again: dict[str, Any] = {"state": State.WAITING, "code": "", "attempts": 0, "ended_at": None, "due_at": now}
        return rows.update(**again, give_up_at=now + KEPT_UP, leased_until=None, token=None)


def replayable(
    endpoint: Endpoint, *, since: datetime | None, until: datetime | None, missed: bool, using: str
) -> QuerySet[Delivery]:
    """What ``replay`` would send again; arguments as there."""
    wanted = Q() if since is None else Q(created_at__gte=since)
    wanted &= Q() if until is None else Q(created_at__lt=until)
    left_out = [State.WAITING, State.DELIVERED] if missed else [State.WAITING]
    written = Delivery.objects.using(using).filter(wanted, endpoint=endpoint).exclude(body="")  # Else it was erased.
    return written.exclude(state__in=left_out)


def delete_endpoints(keys: Iterable[UUID], *, using: str) -> None:
    """Delete them, once those have committed who write deliveries to them; nobody writes any meanwhile."""
    with atomic(using=using):
        locked = lock_endpoints(keys, to_delete=True, using=using)
        lock_deliveries(Delivery.objects.using(using).filter(endpoint__in=locked))
        Endpoint.objects.using(using).filter(pk__in=locked).delete()


def deliveries_to(keys: Iterable[UUID], *, using: str) -> int:
    """Count the deliveries that would be deleted with these endpoints: one more than ``MAX_COUNTED`` at most."""
    deliveries = Delivery.objects.using(using).filter(endpoint__in=list(keys)).order_by()
    return deliveries.values("pk")[: MAX_COUNTED + 1].count()
