"""The settlement, which moves money, and what begins when it has ended."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from project.billing import mails, outside
from project.billing.models import Book, Report, Transaction
from timeline import (
    Limit,  # of limits
    Retry,
    Timeline,
    after,
    after_run,
    daily,
    step,
    task,
)

ZONE = "Europe/Berlin"
BATCH = 100


class Overdue(Exception):
    """What had to have ended has not."""


class Settlement(Timeline):
    """Pays out each night what came before that day: in batches, each transaction once, however often it is killed."""

    starts_on = daily("02:00", zone=ZONE, once_per="day", overlap="queue", catch_up="all", within=timedelta(days=7))

    @task(
        after(),
        atomic=False,
        retry=Retry(max_attempts=6),
        limit=Limit(1, "settlement", until="end"),  # of limits
    )
    def settle(self) -> dict[str, int]:
        """Open the book of the day, pay it out batch by batch, report, and close it."""
        assert self.run is not None  # noqa: S101 (it is of a run)
        day = self.run.key  # Of the row: the same in each attempt, also after midnight.
        opened = self.open_book(day)
        sums = self.each(self.settle_batch, Transaction.objects.filter(book=opened["book"]), size=BATCH)
        settled = {"settled": sums.get("settled", 0), "cents": sums.get("cents", 0)}
        if opened["transactions"]:
            self.report(day, settled)
            self.tell_finance(day, settled)
        self.close_book(day, settled)
        return settled

    @step
    def open_book(self, day: str) -> dict[str, int]:
        """Take up what came before this day and is in no book yet. A crash keeps all of it or none."""
        first = date.fromisoformat(day)
        book = Book.objects.create(day=first, opened_at=self.now)
        midnight = datetime.combine(first, time(), ZoneInfo(ZONE))
        taken = Transaction.objects.filter(book=None, created_at__lt=midnight).update(book=book)
        return {"book": book.pk, "transactions": taken}

    @step(atomic=False)
    def settle_batch(self, batch: list[Transaction]) -> dict[str, int]:
        """Have the processor pay out a batch. Its key tells the processor whether it has done so before."""
        day = Book.objects.values_list("day", flat=True).get(transaction=batch[0])
        orders = [{"id": one.pk, "account": one.account, "cents": one.cents} for one in batch]
        answer = outside.call("settle", {"day": str(day), "orders": orders}, key=self.step.idempotency_key)
        Transaction.objects.filter(pk__in=[one.pk for one in batch]).update(status=Transaction.Status.SETTLED)
        return {"settled": answer["settled"], "cents": answer["cents"]}

    @step
    def report(self, day: str, settled: dict[str, int]) -> None:
        """Write the report of the day."""
        Report.objects.create(kind="settlement", period=day, figures=settled, made_at=self.now)

    @step(atomic=False, retry=Retry(max_attempts=10))
    def tell_finance(self, day: str, settled: dict[str, int]) -> mails.Sent:
        """Mail the report to those who look after the money."""
        text = f"{settled['settled']:,} transactions, EUR {settled['cents'] / 100:,.2f}."
        return mails.tell_finance(f"Settlement of {day}", text)

    @step
    def close_book(self, day: str, settled: dict[str, int]) -> None:
        """Close the book."""
        Book.objects.filter(day=day).update(closed_at=self.now, **settled)

    @task(after(hours=3), aside=True, retry=Retry(max_attempts=1))
    def late(self) -> None:
        """Three hours later: if it has not ended, somebody must know. It is cancelled with the end of the run."""
        raise Overdue("The settlement has not ended.")


class Reconciliation(Timeline):
    """Compares the book of a day with the processor's, as soon as the settlement has ended, and not half an hour later."""

    starts_on = after_run(Settlement)

    @task(after(), atomic=False)
    def compare(self) -> dict[str, int]:
        """Ask the processor; what differs is a case for people."""
        assert self.run is not None  # noqa: S101 (it is of a run)
        day = self.run.key
        ours = Book.objects.get(day=day)
        theirs = outside.settled_on(day)
        if (theirs["count"], theirs["cents"]) != (ours.settled, ours.cents):
            mails.tell_finance(f"The books of {day} differ", f"Ours has {ours.settled}, theirs {theirs['count']}.")
        return {"missing": ours.settled - theirs["count"]}
