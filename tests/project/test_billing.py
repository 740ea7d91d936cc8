"""Billing as it is declared: each timeline, task and step says what it does; and what is made of words."""

from __future__ import annotations

from project.billing import timelines
from project.billing.documents import write_pdf
from project.billing.timelines import Invoicing
from tests.billing import ALL
from timeline import Timeline
from timeline.reading.inventory import inventory, undocumented


class TestTimelines:
    def test_are_all_known_to_the_tests(self):
        declared = {
            name for name, value in vars(timelines).items() if isinstance(value, type) and issubclass(value, Timeline)
        }

        assert declared == set(timelines.__all__)

    def test_say_what_they_do(self):
        assert undocumented([known.definition for known in ALL]) == []

    def test_that_say_nothing_are_found(self, monkeypatch):
        monkeypatch.setattr(Invoicing.definition.tasks["invoice"].method, "__doc__", None)

        assert undocumented([Invoicing.definition]) == ["invoicing.invoice"]

    def test_are_in_the_inventory_with_what_starts_them(self, billing):
        listed = inventory(now=billing.now, using="default")
        starts = {known.name: known.starts[0].said for known in listed if known.starts}

        assert starts["settlement"] == "every day at 02:00 in Europe/Berlin, next 24 November 2026 02:00"
        assert starts["reconciliation"] == "after a run of settlement (completed)"
        assert starts["invoicing"] == "payment.completed"


class TestWritePdf:
    def test_makes_the_same_bytes_of_the_same_words(self):
        assert write_pdf("Invoice 7", ["EUR 29.00"]) == write_pdf("Invoice 7", ["EUR 29.00"])
        assert write_pdf("Invoice 7", ["EUR 29.00"]) != write_pdf("Invoice 8", ["EUR 29.00"])
