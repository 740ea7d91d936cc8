"""Cron jobs that wait for something to have happened, as timelines: invoices, failed payments, customers."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from django.core import mail
from django.core.files.storage import FileSystemStorage
from django.core.mail.backends.locmem import EmailBackend
from django.db import transaction

from project.billing import services
from project.billing.models import Book, Customer, Invoice, Payment, Report, Transaction
from project.billing.timelines import AnnualReport, Metrics, MonthlyBilling, WeeklyReport, payments
from tests.billing import BY_EVENTS, transactions
from timeline.models import Event, ScheduledTask, StepRecord, TimelineRun
from timeline.shortcuts import dead_letters, emit
from timeline.testing import expect

HOUR = timedelta(hours=1)


class Down(Exception):
    """A service does not answer."""


@pytest.fixture
def break_down(monkeypatch):
    """Let a method of Django's raise so many times, and count how often it was called."""

    def break_it(cls, name, times):
        called = []
        really = getattr(cls, name)

        def call(self, *given, **named):
            called.append(given)
            if len(called) <= times:
                raise Down
            return really(self, *given, **named)

        monkeypatch.setattr(cls, name, call)
        return called

    return break_it


@pytest.fixture
def written(monkeypatch):
    """Each PDF that is written."""
    made = []
    really = payments.write_pdf
    monkeypatch.setattr(payments, "write_pdf", lambda *given: made.append(given) or really(*given))
    return made


def pay(payment, clock, message="evt_1"):
    return services.complete(payment, provider_event=message, now=clock.now)


def steps(*names):
    """How often each was recorded."""
    return [StepRecord.objects.filter(name=name).count() for name in names]


class TestAPayment:
    known = BY_EVENTS

    def test_brings_an_invoice_stored_mailed_and_known_to_accounting(self, billing, payment, outside, settings):
        pay(payment, billing)
        billing.advance(HOUR)

        invoice = Invoice.objects.get()
        stored = settings.STORAGES["documents"]["OPTIONS"]["location"] / invoice.path
        assert stored.read_bytes() == bytes(invoice.document)
        assert stored.read_bytes().startswith(b"%PDF")
        [message] = [message for message in mail.outbox if "invoice" in message.subject]
        assert message.to == ["ada@example.com"]
        assert message.attachments[0].content == bytes(invoice.document)
        assert outside.books.done["accounting"] == 1
        assert Transaction.objects.get().cents == 2900
        expect(payment).completed("invoice", times=1)

    def test_told_five_times_brings_one(self, billing, payment, outside):
        """Four of them are the same message; the fifth is another about the same payment, a week later."""
        news = [pay(payment, billing) for _ in range(4)]
        billing.advance(days=7)
        news.append(pay(payment, billing, message="evt_2"))
        billing.advance(HOUR)

        assert news == [True, False, False, False, False]
        assert Invoice.objects.count() == Transaction.objects.count() == outside.books.done["accounting"] == 1
        assert TimelineRun.objects.filter(timeline="invoicing").count() == 1
        assert len(mail.outbox) == 1

    def test_whose_message_is_undone_brings_none(self, billing, payment):
        with transaction.atomic():
            pay(payment, billing)
            transaction.set_rollback(True)
        billing.advance(HOUR)

        assert not Invoice.objects.exists()
        assert not Event.objects.exists()


@pytest.mark.timeline(raises=False)
class TestWhileSomethingIsDown:
    known = BY_EVENTS

    def test_only_the_upload_repeats(self, billing, payment, written, break_down, outside):
        uploads = break_down(FileSystemStorage, "save", times=3)

        pay(payment, billing)
        billing.advance(HOUR)

        assert len(uploads) == 4
        assert len(written) == len(mail.outbox) == outside.books.done["accounting"] == 1
        assert steps("write", "store", "mail", "sync_accounting") == [1, 1, 1, 1]
        assert ScheduledTask.objects.get(task_key="invoicing.invoice").attempt == 4

    def test_the_pdf_is_made_once_and_stored_once_though_no_mail_goes_out(
        self, billing, payment, written, break_down, outside
    ):
        tried = break_down(EmailBackend, "send_messages", times=5)
        uploads = break_down(FileSystemStorage, "save", times=0)

        pay(payment, billing)
        billing.run_until(lambda: len(tried) == 5)
        assert Invoice.objects.get().path
        assert outside.books.done["accounting"] == 0
        billing.advance(days=1)

        assert (len(written), len(uploads), len(tried)) == (1, 1, 6)
        assert len(mail.outbox) == outside.books.done["accounting"] == 1
        expect(payment).completed("invoice")

    def test_a_lost_answer_of_accounting_is_no_second_invoice_there(self, billing, payment, outside):
        outside.faults.losing, outside.faults.seed = 0.7, 2

        pay(payment, billing)
        billing.advance(days=1)

        assert outside.books.faults["lost"] >= 1
        assert outside.books.repeated["accounting"] == outside.books.faults["lost"]
        assert outside.books.done["accounting"] == 1
        assert len(mail.outbox) == 1

    def test_one_that_never_comes_back_leaves_a_dead_letter_not_silence(self, billing, payment, break_down, settings):
        settings.TIMELINE = {**settings.TIMELINE, "ALERTS": ["ops@example.com"]}
        break_down(FileSystemStorage, "save", times=100)

        pay(payment, billing)
        billing.advance(days=3)

        [group] = dead_letters()
        assert (group.task_key, group.count) == ("invoicing.invoice", 1)
        assert [message.to for message in mail.outbox] == [["ops@example.com"]]
        assert steps("write", "store") == [1, 0]


@pytest.mark.timeline(raises=False)
class TestAFailedPayment:
    known = BY_EVENTS

    def fail(self, payment, clock, *attempts):
        for attempt in attempts:
            services.fail(payment, "card expired", attempt=attempt)
            clock.advance(HOUR)

    def test_is_told_to_the_team_and_is_no_case_yet(self, billing, payment, outside, customer):
        self.fail(payment, billing, 1, 2)

        customer.refresh_from_db()
        assert (outside.books.done["chat"], outside.books.done["tickets"], customer.plan) == (2, 0, "team")

    def test_for_the_third_time_escalates_once_however_often_it_is_told(self, billing, payment, outside, customer):
        self.fail(payment, billing, 1, 2, 3, 3, 3)
        billing.advance(days=400)
        self.fail(payment, billing, 3)

        customer.refresh_from_db()
        assert (outside.books.done["chat"], outside.books.done["tickets"]) == (3, 1)
        assert (customer.plan, customer.downgrade_reason) == ("free", "payment failure")
        runs = TimelineRun.objects.filter(timeline="failed_payment")
        assert sorted(runs.values_list("key", flat=True)) == [f"{payment.pk}:{n}" for n in (1, 2, 3)]

    def test_that_is_told_after_the_payment_has_come_means_nothing(self, billing, payment, outside):
        """Webhooks come in any order: a failure that is told late has nobody paid out twice."""
        services.complete(payment, provider_event="evt_1", now=billing.now)
        known_before = Payment.objects.get()  # As another process read it before that.
        known_before.status = "due"

        told = services.fail(known_before, "card expired", attempt=1)
        again = services.complete(payment, provider_event="evt_2", now=billing.now)

        assert (told, again) == (False, False)
        assert Payment.objects.get().status == "completed"
        assert Transaction.objects.count() == 1
        assert outside.books.done["chat"] == 0

    def test_of_another_payment_is_another_case(self, billing, payment, outside, customer):
        other = Payment.objects.create(customer=customer, cents=100, created_at=billing.now)

        self.fail(payment, billing, 3)
        self.fail(other, billing, 3)

        assert outside.books.done["tickets"] == 2

    def test_escalates_though_the_chat_is_down_for_a_while(self, billing, payment, outside):
        outside.faults.failing, outside.faults.seed = 0.7, 2

        self.fail(payment, billing, 3)
        billing.advance(days=1)

        assert outside.books.faults["failed"] > 0
        assert (outside.books.done["chat"], outside.books.done["tickets"]) == (1, 1)


class TestACustomer:
    known = BY_EVENTS

    def test_is_welcomed_once(self, billing):
        customer = services.join("Ben", "ben@example.com", now=billing.now)
        emit("customer.created", customer, key="told again")
        billing.advance(days=1)

        assert [message.subject for message in mail.outbox].count("Welcome to Parley") == 1

    def test_renamed_many_times_at_once_is_told_to_the_crm_as_it_is_last(self, billing, customer, outside):
        for number in range(20):
            services.rename(customer, f"Ada {number}")
        billing.advance(HOUR)

        assert outside.books.known_to_crm(customer.pk)["name"] == "Ada 19"
        assert outside.books.done["crm"] == 2  # For the first, and once more for all that came meanwhile.

    def test_let_in_on_the_third_day_is_helped_on_for_a_month(self, billing, outside):
        customer = services.join("Ben", "ben@example.com", now=billing.now)
        billing.advance(days=3)
        expect(customer).open("decide").foreseen("tell", "first_steps", "ask_how_it_goes")
        services.approve(customer, actor="compliance")
        billing.advance(days=30)

        customer.refresh_from_db()
        assert customer.standing == "approved"
        subjects = ["Welcome to Parley", "About your papers", "Your first invoice", "How is it going?"]
        assert [message.subject for message in mail.outbox if message.to == ["ben@example.com"]] == subjects

    def test_turned_down_is_told_and_then_left_in_peace(self, billing):
        customer = services.join("Ben", "ben@example.com", now=billing.now)
        billing.advance(days=1)
        services.reject(customer, actor="compliance")
        billing.advance(days=40)

        expect(customer).completed("decide").completed("tell").cancelled("first_steps", reason="guard")
        assert "cannot take you" in mail.outbox[-1].body

    def test_nobody_decides_about_is_told_after_five_days(self, billing):
        customer = services.join("Ben", "ben@example.com", now=billing.now)
        billing.advance(days=6)

        customer.refresh_from_db()
        assert customer.standing == Customer.Standing.UNDECIDED
        assert "longer than we said" in mail.outbox[-1].body

    def test_that_leaves_is_written_to_no_more(self, billing):
        customer = services.join("Ben", "ben@example.com", now=billing.now)
        services.approve(customer, actor="compliance")
        billing.advance(days=1)
        emit("customer.left", customer)
        sent = len(mail.outbox)
        billing.advance(days=40)

        assert len(mail.outbox) == sent


class TestEachHour:
    known = [Metrics]

    def test_counts_each_hour(self, billing, payment):
        billing.advance(minutes=10)
        pay(payment, billing)
        billing.advance(hours=5)

        counted = Report.objects.filter(kind="metrics").order_by("period")
        assert [report.figures["payments"] for report in counted] == [1, 0, 0, 0, 0]
        assert counted[0].period == "2026-11-23T13:00Z"


class TestEachMonday:
    known = [WeeklyReport]

    def test_sums_up_the_seven_days_and_names_those_that_are_open(self, billing):
        sunday = date(2026, 11, 29)
        for before in range(8):  # The last of them is of the week before.
            closed = None if before == 2 else billing.now
            day = sunday - timedelta(days=before)
            Book.objects.create(day=day, opened_at=billing.now, closed_at=closed, settled=10, cents=1000)

        billing.advance(days=7)

        assert Report.objects.get(kind="week").period == "2026-11-30"
        assert Report.objects.get(kind="week").figures == {"settled": 60, "cents": 6000, "open": 1}
        assert [message.body for message in mail.outbox] == ["60 settled; days not closed: 1."]


class TestTheClock:
    known = [MonthlyBilling, AnnualReport]

    def test_bills_each_customer_once_a_month(self, billing):
        rows = [Customer(name=str(n), email=f"{n}@example.com", joined_at=billing.now) for n in range(1200)]
        Customer.objects.bulk_create(rows)

        billing.advance(days=45)

        assert Payment.objects.filter(period="2026-12").count() == 1200
        assert Payment.objects.filter(period="2027-01").count() == 1200

    def test_makes_the_report_of_the_year(self, billing, settings):
        book = Book.objects.create(day=billing.now.date(), opened_at=billing.now)
        transactions(2500, billing.now)
        Transaction.objects.update(book=book, status="settled")
        transactions(100, billing.now)  # In no book yet.
        billing.advance(days=45)

        path = settings.STORAGES["documents"]["OPTIONS"]["location"] / "reports" / "2026.pdf"
        assert path.read_bytes().startswith(b"%PDF")
        [loop] = StepRecord.objects.filter(name="read")
        assert (loop.done, loop.result["transactions"], loop.result["unsettled"]) == (2500, 2500, 0)
        assert "The report of 2026" in [message.subject for message in mail.outbox]
