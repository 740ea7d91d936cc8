"""Entities with integer, UUID and string keys."""

from __future__ import annotations

import uuid
from enum import StrEnum

from django.conf import settings
from django.db import models
from django_scopes import ScopedManager

from timeline.models import StateField, known_states


class Order(models.Model):
    """Integer key; anchors of both kinds; a zone and a language of its own."""

    ships_at = models.DateTimeField(null=True, blank=True)
    due_on = models.DateField(null=True, blank=True)
    paid = models.BooleanField(default=False)
    zone = models.CharField(max_length=50, blank=True, default="")
    language = models.CharField(max_length=10, blank=True, default="")
    note = models.CharField(max_length=100, blank=True, default="")

    def __str__(self) -> str:
        return f"order {self.pk}"


class Invoice(models.Model):
    """Of an order that it may have later, or no more; nothing keeps that from being deleted."""

    order = models.ForeignKey(Order, models.DO_NOTHING, null=True, blank=True, db_constraint=False)

    def __str__(self) -> str:
        return f"invoice {self.pk}"


class Reminder(models.Model):
    """Two keys away from an order."""

    invoice = models.ForeignKey(Invoice, models.CASCADE)

    def __str__(self) -> str:
        return f"reminder {self.pk}"


class OrderProxy(Order):
    """A proxy: the same entities."""

    class Meta:
        proxy = True


class Parcel(models.Model):
    """UUID key."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    arrives_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"parcel {self.pk}"


class Note(models.Model):
    """A key that tells no order, and an indexed time that does."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    made_at = models.DateTimeField(auto_now_add=True, db_index=True)

    def __str__(self) -> str:
        return f"note {self.pk}"


class Page(models.Model):
    """A key that may be longer than rows of ours hold, and an indexed time."""

    url = models.CharField(primary_key=True, max_length=300)
    made_at = models.DateTimeField(auto_now_add=True, db_index=True)
    goes_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.url


class Story(Page):
    """Its child."""


class Country(models.Model):
    """String key."""

    code = models.CharField(primary_key=True, max_length=20)
    joins_on = models.DateField(null=True, blank=True)

    def __str__(self) -> str:
        return self.code


class Booking(models.Model):
    """A key of two columns."""

    pk = models.CompositePrimaryKey("hotel", "number")
    hotel = models.IntegerField()
    number = models.IntegerField()
    arrives_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"booking {self.pk}"


class Seen(models.Manager["Seller"]):
    """Hides some rows, whoever asks."""

    def get_queryset(self) -> models.QuerySet[Seller]:
        """Those that are not hidden."""
        return super().get_queryset().filter(hidden=False)


class Seller(models.Model):
    """Read through a manager of its own everywhere."""

    hidden = models.BooleanField(default=False)

    objects = Seen()

    class Meta:
        base_manager_name = "objects"

    def __str__(self) -> str:
        return f"seller {self.pk}"


class Ticket(models.Model):
    """Read through a manager that raises where nobody has said whose rows are meant."""

    shop = models.CharField(max_length=20)
    ends_at = models.DateTimeField(null=True, blank=True)

    objects = ScopedManager(shop="shop")

    def __str__(self) -> str:
        return f"ticket {self.pk}"


class Account(models.Model):
    """A parent of multi-table inheritance."""

    ends_at = models.DateTimeField(null=True, blank=True)
    note = models.CharField(max_length=100, blank=True, default="")

    def __str__(self) -> str:
        return f"account {self.pk}"


class Customer(Account):
    """Its child, with the same key."""

    visits_at = models.DateTimeField(null=True, blank=True)


class CustomerProxy(Customer):
    """A proxy of it."""

    class Meta:
        proxy = True


class Reseller(Customer):
    """Its grandchild."""

    discount = models.IntegerField(default=0)


class Badge(models.Model):
    """Another parent, whose key has a name of its own."""

    number = models.AutoField(primary_key=True)
    valid_until = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"badge {self.pk}"


class Employee(Account, Badge):
    """A child of two parents, whose keys differ."""


class EmployeeProxy(Employee):
    """A proxy of a child."""

    class Meta:
        proxy = True


class Vessel(models.Model):
    """The top of a diamond; UUID key."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    leaves_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"vessel {self.pk}"


class Ship(Vessel):
    """One side of it, by a link with a name of its own."""

    hull = models.OneToOneField(Vessel, models.CASCADE, parent_link=True)


class Plane(Vessel):
    """The other."""


class Seaplane(Ship, Plane):
    """Both: it has two ways to the same vessel."""


class Leg(StrEnum):
    """Where a trip is; a module that models and timelines share."""

    PLANNED = "PLANNED"
    UNDER_WAY = "UNDER_WAY"
    DELAYED = "DELAYED"
    ARRIVED = "ARRIVED"


class Trip(models.Model):
    """Shows the state of its machine."""

    note = models.CharField(max_length=100, blank=True, default="")
    status = models.CharField(max_length=20, blank=True, default="")
    state = StateField(db_index=True)

    class Meta:
        constraints = [known_states(Leg)]

    def __str__(self) -> str:
        return f"trip {self.pk}"


class TripProxy(Trip):
    """A proxy of it."""

    class Meta:
        proxy = True


class Cruise(Trip):
    """Its child, with the same key."""

    ship = models.CharField(max_length=20, blank=True, default="")


class Effect(models.Model):
    """What a handler did, counted where a test can see it."""

    name = models.CharField(max_length=100)

    def __str__(self) -> str:
        return self.name


class Plan(models.Model):
    """Belongs to a user."""

    # The tests' own tables are made before those that migrations make.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, db_constraint=False)

    def __str__(self) -> str:
        return f"plan {self.pk}"


class Seat(models.Model):
    """Belongs to a plan, and so to its user; UUID key."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    plan = models.ForeignKey(Plan, models.CASCADE)

    def __str__(self) -> str:
        return f"seat {self.pk}"


class Folder(models.Model):
    """What no timeline is ever about."""

    def __str__(self) -> str:
        return f"folder {self.pk}"


class Leaf(models.Model):
    """Goes with its folder."""

    folder = models.ForeignKey(Folder, models.CASCADE)

    def __str__(self) -> str:
        return f"leaf {self.pk}"
