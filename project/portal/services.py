"""What people do about a booking. Each writes what they gave and says so with an event, in one transaction."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction

from project.portal.models import Booking, Secret
from timeline.shortcuts import emit

SEARCHED_FOR: Final = timedelta(hours=6)  # Unless they say otherwise.


def apply(
    name: str,
    email: str,
    password: str,
    *,
    now: datetime,
    latest_hour: int = 24,
    search_until: datetime | None = None,
    reference: str = "",
) -> Booking:
    """
    Take in what somebody wants. The booking begins as the row is inserted.

    Args:
        name, email: Whose it is.
        password: Of their account at the portal.
        now: The time.
        latest_hour: An appointment that begins before this hour of the day suits; later ones are asked about.
        search_until: When it is of no use any more; None: six hours from now.
        reference: What the portal is to know it by; nothing: one is made up.
    """
    with transaction.atomic():
        booking = Booking.objects.create(
            reference=reference or secrets.token_hex(6),
            name=name,
            email=email,
            latest_hour=latest_hour,
            search_until=search_until or now + SEARCHED_FOR,
            created_at=now,
        )
        Secret.objects.create(booking=booking, kind=Secret.Kind.PASSWORD, value=password)
        emit("booking.submitted", booking, actor=email)
    return booking


def give_code(booking: Booking, code: str) -> None:
    """
    Hand on the code that the portal has sent. The event has its number in the store of secrets, and not the code.

    Raises:
        TransitionNotAllowed: Nobody asks for one just now; nothing is written.
    """
    with transaction.atomic():
        emit("otp.given", booking, actor=booking.email, payload={"code_ref": _keep(booking, Secret.Kind.CODE, code)})


def give_password(booking: Booking, password: str) -> None:
    """
    Give another password, as the portal did not take the one before.

    Raises:
        TransitionNotAllowed: as above.
    """
    with transaction.atomic():
        _keep(booking, Secret.Kind.PASSWORD, password)
        emit("credentials.updated", booking, actor=booking.email)


def choose(booking: Booking, slot: str) -> None:
    """
    Take one of the appointments that were found, though it is late.

    Raises:
        ValueError: It is none of those.
        TransitionNotAllowed: as above.
    """
    if slot not in booking.offers:
        raise ValueError(slot)
    with transaction.atomic():
        Booking.objects.filter(pk=booking.pk).update(slot=slot)
        emit("slot.chosen", booking, actor=booking.email, payload={"slot": slot})


def give_documents(booking: Booking) -> None:
    """
    Say that the documents are there.

    Raises:
        TransitionNotAllowed: as above.
    """
    with transaction.atomic():
        Booking.objects.filter(pk=booking.pk).update(has_documents=True)
        emit("documents.given", booking, actor=booking.email)


def pay(booking: Booking) -> None:
    """
    Note that the fee was paid.

    Raises:
        TransitionNotAllowed: as above.
    """
    with transaction.atomic():
        Booking.objects.filter(pk=booking.pk).update(has_paid=True)
        emit("payment.completed", booking, actor=booking.email)


def cancel(booking: Booking) -> None:
    """
    Give it up. What the portal has reserved is given back by the timeline that follows.

    Raises:
        TransitionNotAllowed: It has ended.
    """
    emit("booking.cancelled", booking, actor=booking.email)


def resolve(booking: Booking, *, actor: str, state: str) -> None:
    """
    Say, as an operator, that it can go on where it was.

    Args:
        booking: Which.
        actor: Who says so.
        state: In which state it was when they looked.

    Raises:
        TransitionNotAllowed: It is elsewhere by now.
    """
    emit("operator.resolved", booking, actor=actor, expect=state)


def give_up(booking: Booking, *, actor: str, state: str) -> None:
    """Say, as an operator, that there is nothing to be done; else as above."""
    emit("operator.gave_up", booking, actor=actor, expect=state)


def _keep(booking: Booking, kind: Secret.Kind, value: str) -> int:
    """Keep a secret in place of the one before; gives its number."""
    kept, _is_new = Secret.objects.update_or_create(booking=booking, kind=kind, defaults={"value": value})
    return int(kept.pk)
