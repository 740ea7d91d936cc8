"""Those whom billing calls: what goes wrong with them goes wrong as often as they say, and their books are true."""

from __future__ import annotations

import json
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from project.billing.outside import Refused, Unavailable, call, settled_on
from project.demo.faults import Faults
from project.demo.outside import Outside

ORDERS = {"day": "2026-11-24", "orders": [{"id": 1, "cents": 100}, {"id": 2, "cents": 50}]}


class TestFaults:
    def test_come_as_often_as_they_are_set_to(self):
        faults = Faults(failing=0.05, losing=0.02)
        fates = [faults.of("settle") for _ in range(10_000)]

        assert fates.count("refused") / 10_000 == pytest.approx(0.05, abs=0.01)
        assert fates.count("lost") / 10_000 == pytest.approx(0.02, abs=0.01)

    def test_are_the_same_for_the_same_seed_and_others_for_another(self):
        one, same, other = (Faults(0.3, 0.3, seed) for seed in (1, 1, 2))

        fates = [[each.of("settle") for _ in range(50)] for each in (one, same, other)]
        assert fates[0] == fates[1] != fates[2]


class TestOutside:
    def test_does_what_has_the_same_key_once_and_answers_alike(self, outside):
        answers = [call("settle", ORDERS, key="a") for _ in range(3)]

        assert answers == [{"settled": 2, "cents": 150}] * 3
        assert settled_on("2026-11-24") == {"count": 2, "cents": 150}
        assert (outside.books.done["settle"], outside.books.repeated["settle"]) == (1, 2)

    def test_pays_twice_where_keys_are_not_heeded_and_says_so(self, settings):
        with Outside(with_keys=False).answering() as careless:
            settings.BILLING_OUTSIDE = careless.url
            call("settle", ORDERS, key="a")
            call("settle", ORDERS, key="a")
            with urlopen(f"{careless.url}/books") as answer:  # noqa: S310
                told = json.load(answer)

        assert (told["paid"], told["paid_twice"]) == (2, 2)

    def test_that_refuses_has_done_nothing(self, outside):
        outside.faults.failing = 1

        with pytest.raises(Unavailable, match="503"):
            call("settle", ORDERS, key="a")
        assert outside.books.told()["paid"] == 0

    def test_that_loses_its_answer_has_done_it(self, outside):
        outside.faults.losing = 1

        with pytest.raises(Unavailable, match="no answer"):
            call("settle", ORDERS, key="a")
        outside.faults.losing = 0
        assert call("settle", ORDERS, key="a") == {"settled": 2, "cents": 150}
        assert outside.books.told()["paid_twice"] == 0

    def test_knows_no_other_service(self, outside):
        with pytest.raises(Refused, match="404"):
            call("horoscopes", {}, key="a")
        with pytest.raises(HTTPError):
            urlopen(f"{outside.url}/settle/")  # noqa: S310

    def test_that_is_not_there_is_unavailable(self, settings, outside):
        settings.BILLING_OUTSIDE = "http://127.0.0.1:9"

        with pytest.raises(Unavailable):
            call("chat", {}, key="a")

    def test_remembers_what_the_crm_was_told_last(self, outside):
        call("crm", {"customer": 7, "name": "Ada"}, key="a")
        call("crm", {"customer": 7, "name": "Ada L."}, key="b")

        assert outside.books.known_to_crm(7)["name"] == "Ada L."
