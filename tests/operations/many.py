"""Timelines of many kinds of entities, for tests of the verbs for many."""

from datetime import timedelta

from timeline import Timeline, after, at, before, task


class Delivery(Timeline):
    entity = "testapp.Order"
    starts_on = ("order.placed", "order.reopened")
    exits = {"order.closed": "closed", "order.reopened": "reopened"}
    time_zone = "zone"

    @task(after(days=1), priority=3)
    def pack(self, order):
        return None

    @task(before("ships_at", days=2), expires=timedelta(days=1))
    def remind(self, order):
        return None

    @task(at("due_on"), queue="slow")
    def bill(self, order):
        return None

    @task(after(bill, days=1))
    def chase(self, order):
        return None


class Care(Timeline):
    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.closed": "done"}

    @task(after(hours=1))
    def greet(self, order):
        return None


class OnDemand(Timeline):
    """Nothing is left of its runs from the start."""

    entity = "testapp.Order"
    starts_on = "order.placed"

    @task()
    def call(self, order):
        return None


class Arrival(Timeline):
    entity = "testapp.Parcel"
    starts_on = "order.placed"
    exits = {"order.closed": "closed"}
    shadow = True

    @task(at("arrives_at"))
    def track(self, parcel):
        return None


class Sweep(Timeline):
    starts_on = "order.placed"

    @task(after(days=1))
    def sweep(self):
        return None


class Visit(Timeline):
    """About a child of multi-table inheritance, by a field of its parent."""

    entity = "testapp.Customer"
    starts_on = "order.placed"

    @task(at("ends_at"))
    def visit(self, customer):
        return None


TIMELINES = [Delivery, Care, OnDemand, Arrival, Sweep, Visit]
