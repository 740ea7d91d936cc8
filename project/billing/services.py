"""What happens in billing. Each changes the rows and says so with an event, in one transaction."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from project.billing.models import Customer, Payment, Transaction
from timeline.shortcuts import emit


def join(name: str, email: str, *, now: datetime) -> Customer:
    """Take in a customer."""
    with transaction.atomic():
        customer = Customer.objects.create(name=name, email=email, joined_at=now)
        emit("customer.created", customer, key="join")
    return customer


def rename(customer: Customer, name: str) -> None:
    """Change what the customer is called."""
    with transaction.atomic():
        customer.name = name
        customer.save(update_fields=["name"])
        emit("customer.updated", customer)


def approve(customer: Customer, *, actor: str) -> None:
    """Let a new customer in. The timeline that waits for this writes it down."""
    emit("onboarding.approved", customer, actor=actor)


def reject(customer: Customer, *, actor: str) -> None:
    """Turn a new customer down."""
    emit("onboarding.rejected", customer, actor=actor)


def complete(payment: Payment, *, provider_event: str, now: datetime) -> bool:
    """
    Note that a payment has come. The provider tells it by webhook, and may tell it several times.

    Args:
        payment: Which.
        provider_event: The provider's id of its message.
        now: When it came.

    Returns:
        Whether this was news.
    """
    with transaction.atomic():
        if not emit("payment.completed", payment, key=provider_event).recorded:
            return False
        fresh = Payment.objects.filter(pk=payment.pk).exclude(status=Payment.Status.COMPLETED)
        if not fresh.update(status=Payment.Status.COMPLETED, completed_at=now):
            return False
        Transaction.objects.create(account=f"DE{payment.customer_id:020d}", cents=payment.cents, created_at=now)
    return True


def fail(payment: Payment, reason: str, *, attempt: int) -> bool:
    """
    Note that a payment was refused. The provider may tell that late, and of a payment that has come meanwhile it means nothing:
    taken for failed, it would be paid out once more when its completion is told again.

    Args:
        payment: Which.
        reason: What the bank says.
        attempt: Which attempt it was, from 1.

    Returns:
        Whether it counts.
    """
    failed = {"status": Payment.Status.FAILED, "attempt_count": attempt, "failure_reason": reason}
    with transaction.atomic():
        if not Payment.objects.filter(pk=payment.pk).exclude(status=Payment.Status.COMPLETED).update(**failed):
            return False
        told = {"payment_id": payment.pk, "attempt_count": attempt, "reason": reason, "cents": payment.cents}
        emit("payment.failed", payment.customer, payload=told)
    payment.refresh_from_db(fields=failed)
    return True
