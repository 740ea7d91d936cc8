"""What billing keeps. Sums are whole cents."""

from __future__ import annotations

from django.db import models


class Customer(models.Model):
    """Who pays. ``standing`` is what compliance has decided of them: ``new`` until it has."""

    class Standing(models.TextChoices):
        """What compliance says."""

        NEW = "new"
        APPROVED = "approved"
        REJECTED = "rejected"
        UNDECIDED = "undecided"

    name = models.CharField(max_length=100)
    email = models.EmailField(unique=True)
    plan = models.CharField(max_length=20, default="team")
    downgrade_reason = models.CharField(max_length=50, blank=True, default="")
    standing = models.CharField(max_length=10, choices=Standing.choices, default=Standing.NEW)
    joined_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class Payment(models.Model):
    """What a customer is to pay. A bill of the monthly cycle has its month as ``period``; there is one of each."""

    class Status(models.TextChoices):
        """How it stands."""

        DUE = "due"
        COMPLETED = "completed"
        FAILED = "failed"

    customer = models.ForeignKey(Customer, models.CASCADE)
    cents = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.DUE)
    attempt_count = models.PositiveIntegerField(default=0)
    failure_reason = models.CharField(max_length=200, blank=True, default="")
    period = models.CharField(max_length=10, blank=True, default="")
    created_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["customer", "period"], condition=~models.Q(period=""), name="one_bill_a_customer_and_period"
            )
        ]

    def __str__(self) -> str:
        return f"payment {self.pk} of {self.cents / 100:.2f}"


class Invoice(models.Model):
    """The invoice of a payment, as PDF; ``path`` is where the customer's copy is, once it is there."""

    payment = models.OneToOneField(Payment, models.CASCADE)
    document = models.BinaryField()
    path = models.CharField(max_length=200, blank=True, default="")

    def __str__(self) -> str:
        return self.number

    @property
    def number(self) -> str:
        """As it is printed: the key of its payment, so that there are no gaps to explain."""
        return f"INV-{self.payment_id:06d}"


class Book(models.Model):
    """The settlement of a day: its transactions, and what came of them."""

    day = models.DateField(unique=True)
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)
    settled = models.PositiveIntegerField(default=0)
    cents = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"book of {self.day}"


class Transaction(models.Model):
    """What is to be paid out to a merchant. Its book is that of the settlement that took it up."""

    class Status(models.TextChoices):
        """How it stands."""

        PENDING = "pending"
        SETTLED = "settled"

    account = models.CharField(max_length=34)
    cents = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.PENDING)
    book = models.ForeignKey(Book, models.PROTECT, null=True, blank=True)
    created_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"transaction {self.pk} of {self.cents / 100:.2f}"


class Report(models.Model):
    """Figures of a period. Of each kind there is one a period; whoever makes it again finds it there."""

    kind = models.CharField(max_length=20)
    period = models.CharField(max_length=20)
    figures = models.JSONField(default=dict)
    path = models.CharField(max_length=200, blank=True, default="")
    made_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "period"], name="one_report_a_kind_and_period")]

    def __str__(self) -> str:
        return f"{self.kind} {self.period}"
