"""What happens on the site of ``fill.py`` in three months: it leaves rows of each kind there is, in each state."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from unittest import mock

from django.conf import settings

from project.accounts import mails, services
from project.accounts.models import User
from tests.engine.watching import Killed
from tests.testapp.models import Order, Trip
from tests.upgrading import timelines
from tests.webhooks.receiving import Receiver
from timeline.dispatch.claim import claim
from timeline.engine.groups import run
from timeline.features.bulk_actions.poll import begin_bulk
from timeline.features.maintenance.figures import roll_up
from timeline.models import BulkAction, ScheduledTask
from timeline.shortcuts import (
    approve,
    cancel,
    emit,
    hold,
    leave,
    move,
    redrive,
    release,
    run_now,
    schedule,
    start,
)
from timeline.webhooks.disabling import disable, rotate
from timeline.webhooks.models import Disabled, Endpoint
from timeline.webhooks.opening import open_endpoint
from timeline.webhooks.send import WebhookSender

OPS = "ops@example.com"


def live(clock):
    """All of it. What comes last leaves rows that are due, so nothing may run after it."""
    settings.TIMELINE_WEBHOOKS = settings.TIMELINE_WEBHOOKS | {"ALLOW_LOOPBACK": True}
    roll_up(using="default")
    with Receiver() as receiver:
        sell(clock)
        travel(clock, receiver)
        try_it_out(clock)
        for _ in range(2):  # Marks what was logged, and counts it.
            roll_up(using="default")
        leave_half_done(clock)
        leave_untold(clock, receiver)
    leave_to_pollers(clock)
    leave_to_workers(clock)


def sell(clock):
    """Steps, waits, an approval, parcels and a series."""
    order = Order.objects.create(note="a book")
    emit("order.placed", order)
    clock.run_due()
    for event in ("address.confirmed", "order.paid"):
        emit(event, order, actor="eva@example.com", key=event)
    approve(tasks_of(order, "sale.refund").get(), actor=OPS)
    clock.advance(days=22)


def travel(clock, receiver):
    """A machine tells two endpoints, one of which is given up."""
    told, gone = (
        open_endpoint(url=receiver.url, topics=["journey"], description=name, now=clock.now, using="default")[0]
        for name in ("told", "gone")
    )
    trip = Trip.objects.create(note="there")
    for event in ("trip.booked", "trip.left", "trip.held_up"):
        emit(event, trip)
    disable(gone, Disabled.OPERATOR, reason="nobody listens", now=clock.now, using="default")
    clock.advance(days=2)
    WebhookSender("default").drain()
    rotate(told, now=clock.now, using="default")


def try_it_out(clock):
    """Two months of trials: exits, failures, and what operators do."""
    paying, closing, expiring, leaving = (sign_up(clock, name) for name in ("ada", "ben", "cyd", "dan"))
    mailed = Order.objects.create(note="ad hoc")
    schedule("crash_case.note", mailed, at=clock.now + timedelta(days=40), payload={"n": [1, 2.5, None, "ü"]})
    start("trial", expiring, key="second", params={"by": "hand"})
    clock.advance(days=3)
    services.configure_payment(paying, now=clock.now)  # An exit.
    services.close_trial(closing, now=clock.now)
    leave("trial", leaving, reason="moved away", actor=OPS)
    clock.advance(days=30)  # What was left of them ran; some of it cancelled by guards.
    services.extend_trial(expiring, 10, now=clock.now)

    failing, moved, called_off = (sign_up(clock, name) for name in ("eve", "fay", "gus"))
    with mock.patch.object(mails, "send_reminder", refuse):
        clock.advance(days=27)  # Tried five times, and discarded.
    [discarded] = tasks_of(failing, "trial.remind").filter(state="discarded")
    [_again] = redrive([discarded], reason="address corrected", actor=OPS)
    clock.run_due()
    move(tasks_of(moved, "trial.expire"), at=clock.now + timedelta(days=9), reason="asked", actor=OPS)
    cancel(tasks_of(called_off, "trial.expire"), reason="a friend", actor=OPS)


def leave_half_done(clock):
    """An order that waits for events and for a decision, one that came back, and the bank is away: one waits for the other."""
    for note, events in (("kept", ()), ("sent back", ("order.returned",))):
        order = Order.objects.create(note=note)
        for event in ("order.placed", *events):
            emit(event, order)
        clock.run_due()
    with mock.patch.object(timelines, "charge", refuse):
        for _ in range(2):
            emit("charge.asked", Order.objects.create(note="to pay"))
            clock.run_due()


def leave_untold(clock, receiver):
    """One trip is under way. A delivery was tried, and one was not yet."""
    first, second, _planned = trips = [Trip.objects.create(note=note) for note in ("first", "second", "planned")]
    for trip in trips:
        emit("trip.booked", trip)
    for event in ("trip.left", "trip.held_up"):
        emit(event, first)
    receiver.answer = lambda _request: (500, b"out of order")
    WebhookSender("default").drain()
    emit("trip.called_off", second)
    Endpoint.objects.update(url="http://127.0.0.1:1/")


def leave_to_pollers(clock):
    """A hold under which something is due, and one that is over; a bulk action that is done, and one that has not begun."""
    over = hold(queue="default", reason="the mail server moves", actor=OPS)
    release(over, actor=OPS, reason="it has moved")
    held = Order.objects.create(note="held")
    hold(held, until=clock.now + timedelta(days=5), then="shift", reason="she is away", actor=OPS)
    schedule("crash_case.note", held, at=clock.now)
    soon = clock.now + timedelta(days=20)
    ops = User.objects.create(
        email=OPS, signed_up_at=clock.now, trial_ends_at=clock.now, is_staff=True, is_superuser=True
    )
    schedule("crash_case.letter", Order.objects.create(note="called off"), at=soon)
    begin(ops, "cancel", clock)
    clock.run_due()
    schedule("crash_case.letter", Order.objects.create(note="moved"), at=soon)
    begin(ops, "move", clock, by_days=1)


def leave_to_workers(clock):
    """What is open is in all of the five states."""
    waiting = [sign_up(clock, name) for name in ("hal", "ida", "jon", "kim", "lea")]
    reminders = [tasks_of(user, "trial.remind").get() for user in waiting]
    run_now(reminders[1:], reason="now", actor=OPS)
    with mock.patch.object(mails, "send_reminder", refuse):
        run(task_ids=[reminders[1].pk], clock=lambda: clock.now, using="default", worker="mail:1")
    claim(limit=1, now=clock.now, using="default")
    with mock.patch.object(mails, "send_reminder", interrupt), suppress(KeyboardInterrupt):
        ready = ScheduledTask.objects.ready().filter(task_key="trial.remind")[0]
        run(task_ids=[ready.pk], clock=lambda: clock.now, using="default", worker="mail:1", watch=Killed())
    schedule("crash_case.note", Order.objects.create(note="later"), at=clock.now + timedelta(days=1), key="once")


def begin(asker, action, clock, **columns):
    """Ask for a bulk action on all letters."""
    asked = BulkAction(action=action, filters={"task": "crash_case.letter"}, reason="all of them", **columns)
    asked.asker, asked.actor, asked.created_at = str(asker.pk), asker.email, clock.now
    begin_bulk(asked, ScheduledTask.objects.all(), using="default")


def sign_up(clock, name):
    return services.sign_up(f"{name}@example.com", f"{name}.example", now=clock.now)


def tasks_of(entity, key):
    return ScheduledTask.objects.for_entity(entity).filter(task_key=key)


def refuse(entity):
    raise ValueError("no such address")


def interrupt(entity):
    raise KeyboardInterrupt
