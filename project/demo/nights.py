"""The settlement lived: a site on which customers join, pay and fail to pay by day, and each night is settled."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack
from datetime import datetime, timedelta
from itertools import count as numbers
from pathlib import Path
from random import Random
from time import sleep
from uuid import UUID

from django.conf import settings
from django.db.models import Max
from django.urls import reverse
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from project.accounts.services import sign_up
from project.billing import services
from project.billing.models import Customer, Payment
from project.demo.clock import STANDING, SettableClock, now
from project.demo.counting import Counter
from project.demo.joining import tell
from project.demo.live import wait_for_site
from project.demo.mailing import let_be_down
from project.demo.operators import Login
from project.demo.outsiders import read_books
from project.demo.people import Person
from project.demo.processes import Interrupted, interruptible, start_process
from project.demo.settling import loop_of, make_transactions, settle_now, six_in_the_evening, start_outside
from timeline.models import ScheduledTask

EVERY = timedelta(minutes=20)  # Of story time: somebody does something.
OUTAGE = (8, 11)  # From which hour to which, in Greenwich, no mail goes out.


def live(
    people: list[Person],
    login: Login,
    *,
    count: int,
    port: int,
    seconds_per_day: float,
    with_keys: bool,
    console: Console,
) -> None:
    """
    Run the site and what works for it until interrupted; leave nothing running.

    Args:
        people: Who signs up on the side.
        login: What opens the admin.
        count: Transactions a night.
        port: Of the site, on the loopback address.
        seconds_per_day: How fast story time runs.
        with_keys: Whether the payment processor heeds idempotency keys.
        console: Where it is shown.
    """
    try:
        with interruptible(), ExitStack() as stack:
            file = Path(settings.DATA_DIR) / "clock"
            clock = SettableClock(file, seconds_per_day=seconds_per_day, begin=six_in_the_evening())
            stack.callback(clock.run_at, STANDING)  # Commands that come later are told when it ended.
            os.environ["SECRET_KEY"] = settings.SECRET_KEY
            os.environ["DEBUG"] = "1"  # Else the site has no style: runserver gives no static files.
            outside = start_outside(stack, with_keys=with_keys)
            make_transactions(count, at=now() - timedelta(hours=4))
            site = start_process(stack, "site", "manage", "runserver", f"127.0.0.1:{port}", "--noreload")
            worker = start_process(stack, "worker", "manage", "timeline_worker", "--threads", "2")
            base = f"http://127.0.0.1:{port}"
            wait_for_site(base, site)
            print_ways_in(base, login, worker.pid, seconds_per_day, console)
            tell(Path(settings.DATA_DIR))
            settle_now(worker)
            Town(people, count, base, outside, console).live([site, worker])
    except Interrupted:
        console.print("\nStopped: the site and all that worked for it have ended.")


def print_ways_in(base: str, login: Login, worker: int, seconds_per_day: float, console: Console) -> None:
    """The links to look at."""
    admin = f"{base}{reverse('admin:timeline_scheduledtask_changelist')}"
    console.print(
        f"Site {base}  worker pid {worker}  1 day = {seconds_per_day:g} s  (Ctrl-C, or kill {os.getpid()}, stops all of it)\n"
        f"Log in as {login.email} with the password {login.password}\n"
        f"  {admin}  upcoming events; from there timelines and dead letters\n"
        f"  {base}{reverse('admin:billing_book_changelist')}  the books of the nights\n"
        f"  {base}{reverse('admin:billing_customer_changelist')}  customers, each with a timeline\n",
        highlight=False,
        soft_wrap=True,
    )


class Town:
    """
    Everybody who does something, and the nights between.

    Args:
        people: Who signs up on the side.
        count: Transactions a night.
        base: Address of the site.
        outside: Address of those whom billing calls.
        console: Where it is shown.
    """

    def __init__(self, people: list[Person], count: int, base: str, outside: str, console: Console) -> None:
        self.to_come = list(people)
        self.count = count
        self.base = base
        self.outside = outside
        self.console = console
        self.chances = Random(1)  # noqa: S311 (what people do in a demonstration)
        self.acted_at = now()
        self.day = now().date()
        self.shown: set[UUID] = set()
        self.names = numbers(1)

    def live(self, processes: list[subprocess.Popen[bytes]]) -> None:
        """Act until a process ends, or this one is interrupted."""
        columns = (TextColumn("{task.description}"), BarColumn(40), MofNCompleteColumn())
        with Progress(*columns, console=self.console) as progress:
            bars: dict[UUID, TaskID] = {}
            counter = Counter()
            while all(process.poll() is None for process in processes):
                self.act()
                counter.look()
                self.show(progress, bars)
                sleep(0.1)
        raise SystemExit("The site or a worker has ended by itself; see the files *.log in the demo's folder.")

    def act(self) -> None:
        """Let people do what they do, transactions come, and the mail server break down and come back."""
        at = now()
        down = OUTAGE[0] <= at.hour < OUTAGE[1]
        if let_be_down(down):
            self.console.print(f"{at:%a %H:%M}  The mail server {'is down' if down else 'is back'}.", style="yellow")
        if at.date() != self.day and at.hour >= 12:
            self.day = at.date()
            make_transactions(self.count, at=at)
        if at - self.acted_at >= EVERY:
            self.acted_at = at
            self.somebody(at)

    def somebody(self, at: datetime) -> None:
        """Somebody joins, pays, fails to pay, or signs up for the chat."""
        last = Customer.objects.aggregate(last=Max("pk"))["last"]
        does = self.chances.choice(("join", "pay", "pay", "fail", "chat"))
        if last is None or does == "join":
            number = next(self.names)
            customer = services.join(f"Customer {number}", f"customer{number}@example.com", now=at)
            if number % 3:
                services.approve(customer, actor="compliance")
            return
        customer = Customer.objects.get(pk=self.chances.randint(1, last))
        if does == "chat" and self.to_come:
            person = self.to_come.pop(0)
            sign_up(person.email, person.website, now=at)
        elif does == "fail":
            self.fail(customer, at)
        else:
            payment = Payment.objects.create(customer=customer, cents=self.chances.randint(500, 9900), created_at=at)
            services.complete(payment, provider_event=f"evt_{payment.pk}", now=at)

    def fail(self, customer: Customer, at: datetime) -> None:
        """Let a payment of theirs fail once more; the third time it is a case."""
        payment = Payment.objects.filter(customer=customer, status="failed").order_by("-pk").first()
        if payment is None or payment.attempt_count >= 3:
            payment = Payment.objects.create(customer=customer, cents=2900, created_at=at)
        services.fail(payment, "card expired", attempt=payment.attempt_count + 1)

    def show(self, progress: Progress, bars: dict[UUID, TaskID]) -> None:
        """Show each settlement that is under way, and what was paid when it has ended."""
        rows = ScheduledTask.objects.filter(task_key="settlement.settle", attempt__gt=0).select_related("run")
        for task in rows.exclude(pk__in=self.shown):
            loop = loop_of(task)
            if loop is None or not loop.total:
                continue
            if task.pk not in bars:
                path = reverse("admin:timeline_scheduledtask_change", args=[task.pk])
                self.console.print(
                    f"Settlement of {task.run.key if task.run else ''}: {self.base}{path}", soft_wrap=True
                )
                bars[task.pk] = progress.add_task(f"Settling {task.run.key if task.run else ''}", total=loop.total)
            progress.update(bars[task.pk], completed=loop.done or 0)
            if not task.is_open:
                self.shown.add(task.pk)
                told = read_books(self.outside)
                self.console.print(f"  {task.state}: {told['paid']:,} paid so far, {told['paid_twice']:,} twice.")
