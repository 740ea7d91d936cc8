"""What a payment brings: an invoice, or, if it fails, somebody who looks."""

from __future__ import annotations

from typing import Any

from project.billing import mails, outside
from project.billing.documents import put, write_pdf
from project.billing.models import Customer, Invoice, Payment
from timeline import Retry, Timeline, after, step, task


class Invoicing(Timeline):
    """An invoice for each payment that has come: once, however often the provider tells it."""

    entity = "billing.Payment"
    starts_on = "payment.completed"
    once = True

    @task(
        after(),
        atomic=False,
        limit=10,  # of limits
    )
    def invoice(self, payment: Payment) -> dict[str, str]:
        """Write the invoice, store it, send it, and tell accounting. Each is tried again alone."""
        number = self.write(payment)
        path = self.store(number)
        self.mail(payment.pk)
        self.sync_accounting(payment.pk)
        return {"invoice": number, "path": path}

    @step
    def write(self, payment: Payment) -> str:
        """Make the PDF, in one transaction with the record of this step."""
        invoice = Invoice(payment=payment)
        lines = [f"To {payment.customer.name}", f"EUR {payment.cents / 100:.2f}", "Paid. Thank you."]
        invoice.document = write_pdf(f"Invoice {invoice.number}", lines)
        invoice.save(force_insert=True)
        return invoice.number

    @step(atomic=False, retry=Retry(max_attempts=10))
    def store(self, number: str) -> str:
        """Put the PDF into the storage; the same again replaces it."""
        invoice = Invoice.objects.get(payment_id=self.task.entity_id)
        invoice.path = put(f"invoices/{number}.pdf", bytes(invoice.document))
        invoice.save(update_fields=["path"])
        return invoice.path

    @step(atomic=False, retry=Retry(max_attempts=10))
    def mail(self, payment: int) -> mails.Sent:
        """Send it to the customer."""
        return mails.send_invoice(Invoice.objects.select_related("payment__customer").get(payment=payment))

    @step(atomic=False, retry=Retry(max_attempts=10))
    def sync_accounting(self, payment: int) -> None:
        """Tell accounting, which knows by the key whether it was told before."""
        invoice = Invoice.objects.select_related("payment").get(payment=payment)
        told = {"number": invoice.number, "cents": invoice.payment.cents}
        outside.call("accounting", told, key=self.step.idempotency_key)


class FailedPayment(Timeline):
    """Tells the team of each failure of a payment, once; the third is a case for people."""

    entity = "billing.Customer"
    starts_on = "payment.failed"
    once = True
    key = ("payment_id", "attempt_count")

    @task(after(), atomic=False)
    def look_after(self, customer: Customer) -> dict[str, bool]:
        """Tell the team; after the third failure open a ticket and downgrade the plan."""
        assert self.event is not None  # noqa: S101 (it starts on one)
        failed = self.event.payload
        self.tell_the_team(customer.pk, failed)
        if failed["attempt_count"] < 3:
            return {"escalated": False}
        self.open_ticket(customer.pk, failed)
        self.downgrade(customer.pk)
        return {"escalated": True}

    @step(atomic=False)
    def tell_the_team(self, customer: int, failed: dict[str, Any]) -> None:
        """Say it in the chat."""
        text = f"Payment of customer {customer} failed: {failed['reason']} (attempt {failed['attempt_count']})"
        outside.call("chat", {"text": text}, key=self.step.idempotency_key)

    @step(atomic=False)
    def open_ticket(self, customer: int, failed: dict[str, Any]) -> None:
        """Have somebody look at it."""
        title = f"Payment {failed['payment_id']} of customer {customer} keeps failing"
        outside.call("tickets", {"title": title}, key=self.step.idempotency_key)

    @step
    def downgrade(self, customer: int) -> None:
        """Give the free plan."""
        Customer.objects.filter(pk=customer).update(plan="free", downgrade_reason="payment failure")
