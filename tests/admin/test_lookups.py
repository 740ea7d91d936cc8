"""The lists of the admin answer to the filters that they show, whatever else an address asks."""

from __future__ import annotations

import re
from itertools import cycle, product
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.contrib import admin
from django.urls import reverse

from tests.webhooks.receiving import Told
from timeline.models import ScheduledTask
from timeline.testing import only_timelines
from timeline.webhooks.models import Delivery, Endpoint
from timeline.webhooks.opening import open_endpoint

OURS = [model for model, shown in admin.site._registry.items() if type(shown).__module__.startswith("timeline.")]
HOSTILE = (
    *("\x00", "", "x", "(", "(a+)+$", "%", "1,\x00", "True", "-1", "9" * 40, "1" * 5_000, "99999999999"),
    *("0001-01-01T00:00:00+14:00", "0001-01-01", "9999-12-31T23:59:59-14:00", "9999-12-31", "99999999999-01-01"),
    *("2026-01-01", "2026-13-45", "24:00", "2026-03-01T00:00:00+99:99", "{}", '["', "\N{ARABIC-INDIC DIGIT ONE}"),
)
MANY = 500  # Lookups in one address: if a list passes over all, none need be asked by itself.
# What Django reads of an address beside lookups.
OTHERS = ("q", "o", "p", "all", "e", "_popup", "_to_field", "_facets", "_source_model")


@pytest.fixture
def rows(order, about, clock):
    """A row in each list, and the text by which its page shows it; two endpoints, between which a filter chooses."""
    task = about(order)
    with only_timelines(Told):
        for name in ("Books", "Letters"):
            endpoint, _secret = open_endpoint(
                url="https://books.example.com/", description=name, topics=["told"], now=clock.now, using="default"
            )
    delivery = Delivery.objects.create(
        endpoint=endpoint,
        source=task.pk,
        topic="told.asked",
        body="{}",
        created_at=clock.now,
        due_at=clock.now,
        give_up_at=clock.now,
    )
    return {type(row): f"/{row.pk}/change/" for row in (task, endpoint, delivery)}


@pytest.fixture
def browser(person, browse):
    """Somebody who may see everything."""
    return browse(person("root", is_staff=True, is_superuser=True))


def list_of(model: Any) -> str:
    """Where its list is."""
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def offered(page: str) -> set[str]:
    """The lookups to which the list leads by itself."""
    asked = [parse_qsl(where.replace("&amp;", "&")) for where in re.findall(r'href="\?([^"]*)"', page)]
    return {name for pairs in asked for name, _value in pairs if "__" in name}


def possible(model: Any) -> list[str]:
    """Every lookup on every column, also behind relations, and on none."""
    found = ["pk", "nothing", "nothing__exact", "\x00", "__", "pk__in", "id__regex"]
    for field in model._meta.get_fields():
        found += [field.name, *(f"{field.name}__{lookup}" for lookup in field.get_lookups())] if field.concrete else []
        if field.is_relation:
            found += [f"{field.name}__{further.name}__startswith" for further in field.related_model._meta.fields]
    return found


def shows(answer: Any, row: str) -> bool:
    """Whether a list has the row in it."""
    return answer.status_code == 200 and row in answer.content.decode()


class TestEveryList:
    def test_is_walked(self):
        assert set(OURS) == {ScheduledTask, Endpoint, Delivery}

    @pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
    def test_answers_to_no_lookup_that_it_does_not_offer(self, model, rows, browser):
        """No row has these values: a list that looked for them would be empty, or break. Some names are like one of ours."""
        where, row = list_of(model), rows[model]
        offers = offered(browser.get(where).content.decode())
        asked = list(zip(sorted(set(possible(model)) - offers), cycle(("nowhere", *HOSTILE)), strict=False))

        for at in range(0, len(asked), MANY):
            some = asked[at : at + MANY]
            if not shows(browser.get(where, some), row):
                for pair in some:
                    answer = browser.get(where, [pair])
                    assert answer.status_code == 400 or shows(answer, row), pair

    @pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
    def test_breaks_at_no_value(self, model, rows, browser):
        where = list_of(model)
        asked = [*product(offered(browser.get(where).content.decode()), HOSTILE), *product(OTHERS, HOSTILE[::4])]

        for pair in asked:
            assert browser.get(where, [pair]).status_code in (200, 302, 400), pair

    def test_answers_to_what_it_offers(self, rows, browser):
        """Each link of a filter leads to a page; what is chosen there narrows it."""
        where, row = list_of(Delivery), rows[Delivery]
        links = re.findall(r'href="(\?[^"]*__[^"]*)"', browser.get(where).content.decode())
        assert {link.partition("=")[0] for link in links} == {
            "?state__exact",
            "?endpoint__id__exact",
            "?created_at__gte",
        }

        answers = {link: browser.get(where + link.replace("&amp;", "&")) for link in links}

        assert {answer.status_code for answer in answers.values()} == {200}
        assert shows(answers["?state__exact=waiting"], row)
        assert not shows(answers["?state__exact=failed"], row)
