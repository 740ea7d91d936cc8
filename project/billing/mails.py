"""The mails of billing, through Django's mail framework."""

from __future__ import annotations

from typing import TypedDict

from django.core.mail import EmailMessage, send_mail

from project.billing.models import Customer, Invoice


class Sent(TypedDict):
    """What was sent, as a task keeps it."""

    to: str
    subject: str
    text: str


FINANCE = "finance@parley.example"


def send_invoice(invoice: Invoice) -> Sent:
    """The invoice, attached."""
    customer = invoice.payment.customer
    subject = f"Your invoice {invoice.number}"
    text = f"Thank you, {customer.name}. Your invoice is attached."
    mail = EmailMessage(subject, text, None, [customer.email])
    mail.attach(f"{invoice.number}.pdf", bytes(invoice.document), "application/pdf")
    mail.send()
    return Sent(to=customer.email, subject=subject, text=text)


def send(customer: Customer, subject: str, text: str) -> Sent:
    """Anything short."""
    said = f"{customer.name},\n\n{text}"
    send_mail(subject, said, None, [customer.email])
    return Sent(to=customer.email, subject=subject, text=said)


def tell_finance(subject: str, text: str) -> Sent:
    """To those who look after the money."""
    send_mail(subject, text, None, [FINANCE])
    return Sent(to=FINANCE, subject=subject, text=text)
