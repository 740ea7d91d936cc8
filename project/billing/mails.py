"""The mails of billing, through Django's mail framework."""

from __future__ import annotations

from django.core.mail import EmailMessage, send_mail

from project.billing.models import Customer, Invoice

FINANCE = "finance@parley.example"


def send_invoice(invoice: Invoice) -> None:
    """The invoice, attached."""
    customer = invoice.payment.customer
    subject = f"Your invoice {invoice.number}"
    mail = EmailMessage(subject, f"Thank you, {customer.name}. Your invoice is attached.", None, [customer.email])
    mail.attach(f"{invoice.number}.pdf", bytes(invoice.document), "application/pdf")
    mail.send()


def send(customer: Customer, subject: str, text: str) -> None:
    """Anything short."""
    send_mail(subject, f"{customer.name},\n\n{text}", None, [customer.email])


def tell_finance(subject: str, text: str) -> None:
    """To those who look after the money."""
    send_mail(subject, text, None, [FINANCE])
