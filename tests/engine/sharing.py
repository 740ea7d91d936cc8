"""Handlers in one transaction with others: what they write once, and how they end."""

from datetime import timedelta

from tests.testapp.models import Effect, Order
from timeline import Cancel, Discard, RetryAfter

# What one raises, and how its task ends.
RAISED = [
    (ValueError("boom"), ("retryable", None, 1, 1)),
    (Cancel("not wanted"), ("cancelled", None, 0, 1)),
    (Discard("no such address"), ("discarded", None, 1, 1)),
    (RetryAfter(timedelta(minutes=7)), ("retryable", None, 1, 1)),
]


def telling_once(entered, act):
    """A handler that notes its entry, writes here that it told its order, and acts."""

    def handler(job, order):
        entered.append(order.pk)
        Effect.objects.create(name=str(order.pk))
        order.note += "told "
        order.save(update_fields=["note"])
        return act(job, order)

    return handler


def keys(rows):
    return [int(row.entity_id) for row in rows]


def assert_told_once(rows):
    assert sorted(int(name) for name in Effect.objects.values_list("name", flat=True)) == sorted(keys(rows))
    assert dict(Order.objects.exclude(note="").values_list("pk", "note")) == dict.fromkeys(keys(rows), "told ")


def ends(rows):
    return [(row.state, row.result, row.failures, row.attempt) for row in rows]
