"""What a customer brings: a welcome, the days of the onboarding, and a CRM that keeps in step."""

from __future__ import annotations

from datetime import timedelta

from project.billing import mails, outside
from project.billing.models import Customer
from timeline import Timeline, after, approval, task


def is_approved(customer: Customer) -> bool:
    """Whether compliance has let the customer in."""
    return customer.standing == Customer.Standing.APPROVED


class Welcome(Timeline):
    """A mail to each new customer, once."""

    entity = "billing.Customer"
    starts_on = "customer.created"
    once = True

    @task(after(), atomic=False, tags=("mail",))
    def greet(self, customer: Customer) -> mails.Sent:
        """Say hello."""
        return mails.send(customer, "Welcome to Parley", "Good to have you. Somebody looks at your papers now.")


class Directory(Timeline):
    """Keeps the CRM in step: it has what the customer was after the last change, however many there were at once."""

    entity = "billing.Customer"
    starts_on = ("customer.created", "customer.updated")
    again = True

    @task(after(), atomic=False)
    def sync(self, customer: Customer) -> None:
        """Send the CRM what there is to know."""
        known = {"customer": customer.pk, "name": customer.name, "email": customer.email}
        outside.call("crm", known, key=str(self.idempotency_key))


class Onboarding(Timeline):
    """The first month of a customer: compliance decides, and two mails help on the way."""

    entity = "billing.Customer"
    starts_on = "customer.created"
    exits = {"customer.left": "left"}

    @task(after(), atomic=False)
    def ask_compliance(self, customer: Customer) -> None:
        """Have compliance look at the papers."""
        outside.call("tickets", {"title": f"Papers of {customer.name}"}, key=str(self.idempotency_key))

    @task(approval("onboarding", by="billing.change_customer", within=timedelta(days=5)))
    def decide(self, customer: Customer) -> str:
        """Write down what compliance has decided; after five days without a word, that it has not."""
        verdict = self.awaited.name.partition(".")[2] if self.awaited else "undecided"
        customer.standing = Customer.Standing(verdict)
        customer.save(update_fields=["standing"])
        return verdict

    @task(after(decide), atomic=False, tags=("mail",))
    def tell(self, customer: Customer) -> mails.Sent:
        """Tell the customer."""
        said = {
            Customer.Standing.APPROVED: "You are in.",
            Customer.Standing.REJECTED: "We are sorry: we cannot take you as a customer.",
        }.get(Customer.Standing(customer.standing), "It takes us longer than we said. Please bear with us.")
        return mails.send(customer, "About your papers", said)

    @task(after(decide, days=3), only_if=is_approved, atomic=False, tags=("mail",))
    def first_steps(self, customer: Customer) -> mails.Sent:
        """Three days later: help with the first invoice."""
        return mails.send(customer, "Your first invoice", "Three things to know before you send one.")

    @task(after(decide, days=25), only_if=is_approved, atomic=False, tags=("mail",))
    def ask_how_it_goes(self, customer: Customer) -> mails.Sent:
        """Almost a month later: ask how it goes."""
        return mails.send(customer, "How is it going?", "Answer this mail; a person reads it.")
