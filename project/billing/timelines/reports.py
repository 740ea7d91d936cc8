"""What the clock starts besides the settlement: figures by the hour and the week, bills by the month, the report of a year."""

from __future__ import annotations

from datetime import date, timedelta

from django.db.models import Sum

from project.billing import mails
from project.billing.documents import put, write_pdf
from project.billing.models import Book, Customer, Payment, Report, Transaction
from project.billing.timelines.settlement import ZONE
from timeline import Retry, Timeline, after, cron, hourly, monthly, step, task, weekly

PRICE = 2900  # Of the plan "team", in cents a month.


class Metrics(Timeline):
    """Counts, each hour, what came in the hour before."""

    starts_on = hourly(zone="UTC", overlap="allow", catch_up="all")

    @task(after())
    def count(self) -> dict[str, int]:
        """Keep the figures of the hour."""
        assert self.run is not None  # noqa: S101 (it is of a run)
        end = self.run.started_at
        payments = Payment.objects.filter(completed_at__gte=end - timedelta(hours=1), completed_at__lt=end)
        figures = {"payments": payments.count(), "cents": payments.aggregate(sum=Sum("cents"))["sum"] or 0}
        Report.objects.create(kind="metrics", period=self.run.key, figures=figures, made_at=self.now)
        return figures


class WeeklyReport(Timeline):
    """Sums up the books of the week before, on Monday morning."""

    starts_on = weekly("mon 06:00", zone=ZONE, once_per="week")

    @task(after(), atomic=False)
    def sum_up(self) -> dict[str, int]:
        """Sum up the seven days, and tell finance also of days whose book is not closed."""
        assert self.run is not None  # noqa: S101 (it is of a run)
        monday = date.fromisoformat(self.run.key)
        figures = self.add_up(monday.isoformat())
        self.tell(monday.isoformat(), figures)
        return figures

    @step
    def add_up(self, monday: str) -> dict[str, int]:
        """Add up the books, and keep the figures."""
        end = date.fromisoformat(monday)
        closed = Book.objects.filter(day__gte=end - timedelta(days=7), day__lt=end, closed_at__isnull=False)
        sums = closed.aggregate(settled=Sum("settled"), cents=Sum("cents"))
        figures = {name: value or 0 for name, value in sums.items()} | {"open": 7 - closed.count()}
        Report.objects.create(kind="week", period=monday, figures=figures, made_at=self.now)
        return figures

    @step(atomic=False, retry=Retry(max_attempts=10))
    def tell(self, monday: str, figures: dict[str, int]) -> mails.Sent:
        """Mail the figures."""
        return mails.tell_finance(
            f"The week before {monday}", f"{figures['settled']:,} settled; days not closed: {figures['open']}."
        )


class MonthlyBilling(Timeline):
    """Bills each customer on the first of the month."""

    starts_on = monthly(1, "00:30", zone=ZONE, once_per="month")

    @task(after(), atomic=False)
    def bill(self) -> dict[str, int]:
        """Go through those who pay, batch by batch."""
        sums = self.each(self.bill_some, Customer.objects.filter(plan="team"), size=500)
        return {"bills": sums.get("bills", 0)}

    @step
    def bill_some(self, customers: list[Customer]) -> dict[str, int]:
        """Write a bill for each, in one transaction with the record of the batch."""
        assert self.run is not None  # noqa: S101 (it is of a run)
        month = self.run.key[:7]
        bills = [Payment(customer=one, cents=PRICE, period=month, created_at=self.now) for one in customers]
        Payment.objects.bulk_create(bills, ignore_conflicts=True)  # One of each month: a constraint sees to it.
        return {"bills": len(bills)}


class AnnualReport(Timeline):
    """The report to the supervisor: hours of reading, on the second of January. Killed, it goes on where it was."""

    starts_on = cron("0 3 2 1 *", zone=ZONE, once_per="month")

    @task(after(), atomic=False)
    def compile(self) -> dict[str, str]:
        """Read the transactions of the year before, write the report, store it, and tell finance."""
        assert self.run is not None  # noqa: S101 (it is of a run)
        year = int(self.run.key[:4]) - 1
        sums = self.each(self.read, Transaction.objects.filter(book__day__year=year), size=1000)
        path = self.store(year, sums)
        self.tell(year, path)
        return {"path": path}

    @step
    def read(self, transactions: list[Transaction]) -> dict[str, int]:
        """Count a thousand of them; sums over all are kept with the place."""
        return {
            "transactions": len(transactions),
            "cents": sum(one.cents for one in transactions),
            "unsettled": sum(one.status != Transaction.Status.SETTLED for one in transactions),
        }

    @step(atomic=False, retry=Retry(max_attempts=10))
    def store(self, year: int, sums: dict[str, int]) -> str:
        """Write the PDF and store it; the same again replaces it."""
        lines = [f"{name}: {value:,}" for name, value in sorted(sums.items())]
        return put(f"reports/{year}.pdf", write_pdf(f"Transactions of {year}", lines))

    @step(atomic=False, retry=Retry(max_attempts=10))
    def tell(self, year: int, path: str) -> mails.Sent:
        """Say where it is."""
        return mails.tell_finance(f"The report of {year}", f"It is in {path}.")
