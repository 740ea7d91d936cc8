"""Texts that users and handlers control stay text, on every page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import parse_qs

import pytest
from django.contrib.admin.models import LogEntry as AdminLogEntry
from django.utils.text import Truncator

from tests.admin.conftest import ACT, ENTITY, LIST, detail
from tests.asking import sample
from tests.resting import recorded, resting
from timeline import Timeline, task
from timeline.lifecycle import State
from timeline.models import Event, LogEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import hold, schedule
from timeline.testing import only_timelines

# Tags that act when loaded, shown or touched; each also from within an attribute and from within a text element.
TAGS = [
    "<script>alert(1)</script>",
    "<ScRiPt src=//a></sCrIpT>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script>",
    "<iframe src=javascript:alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
    "<body onload=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<video><source onerror=alert(1)>",
    "<object data=javascript:alert(1)>",
    "<style>@import '//a'</style>",
    "<math><mtext></mtext></math>",
    "<base href=//a>",
]
# There is an odd number of tags, so every second one has each of them.
BROKEN_OUT = sample([f"{before}{tag}" for before in ("", '">', "'/>") for tag in TAGS], 2)
EVIL = [
    *(" ".join(BROKEN_OUT[some : some + 3]) for some in range(0, len(BROKEN_OUT), 3)),  # A page shows several at once.
    "{{ 7|add:7 }}{% debug %}",
    "';alert(1)//",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "</title><script>alert(1)</script>",
    '" onmouseover=alert(1) x="',
    "w" * 50,
]


@pytest.fixture(params=EVIL)
def evil(request):
    return request.param


@pytest.fixture
def row(evil, person, now):
    """A task that has the text wherever there may be one."""
    ada = person("ada", website=evil)
    type(ada).objects.filter(pk=ada.pk).update(email=evil)
    ref = {"entity_label": "accounts.user", "entity_id": str(ada.pk)}
    event = Event.objects.create(name=evil, key=evil, actor=evil, occurred_at=now, recorded_at=now, **ref)
    run = TimelineRun.objects.create(
        timeline="account",
        key=evil,
        started_at=now,
        started_by=event,
        ended_at=now,
        end_code="left",
        end_reason=evil,
        **ref,
    )
    made = ScheduledTask.objects.create(
        run=run,
        task_key="account.welcome",
        occurrence=evil,
        state=State.DISCARDED,
        queue=evil,
        nominal_at=now,
        scheduled_at=now,
        payload={evil: evil},
        result={evil: [evil]},
        error=evil,
        reason_code="operator",
        reason=evil,
        actor=evil,
        worker=evil,
        attempt=1,
        max_attempts=1,
        cause=event,
        created_at=now,
        finished_at=now,
        **ref,
    )
    steps = [("available", "active"), ("active", "discarded")]
    for seq, (source, end) in enumerate(steps, start=1):
        LogEntry.objects.create(
            task=made,
            seq=seq,
            at=now,
            from_state=source,
            to_state=end,
            attempt=1,
            actor=evil,
            reason_code="operator",
            reason=evil,
            detail={"error": {"class": evil, "message": evil, "traceback": evil}},
        )
    return made


TURNING = ["\u202agnp", "a\u202egnp.exe", "\u2066x", "\u2067x\u2069y", "\u202dx\u202cy"]


class TestTextsThatTurnTheDirection:
    """What would show an address as another one, or the words after it in another order."""

    def test_stay_in_what_a_form_sends(self, operator):
        page = operator.get(LIST, {"q": "a\u202eb"}).content.decode()

        assert 'name="q" value="a\u202eb"' in page
        assert "q=a%E2%80%AEb" in page
        assert "Search:</span> a\N{REPLACEMENT CHARACTER}b" in page

    @pytest.mark.parametrize("evil", TURNING, ids=ascii)
    def test_show_each_such_sign_on_each_page(self, row, evil, operator):
        hold(row.entity_ref, reason=f"a dispute {evil}", actor="ada")
        for address in (f"{LIST}?state=all", detail(row), f"{ENTITY}?label=accounts.user&id={row.entity_id}"):
            page = re.sub("<[^>]*>", "", operator.get(address).content.decode())

            assert "\N{REPLACEMENT CHARACTER}" in page
            assert not set(page) & set(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))


class Page(HTMLParser):
    """A page as a browser reads it: its elements in order, each with its attributes, its text, and what it stands in."""

    VOID = frozenset({"base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"})

    def __init__(self, response):
        super().__init__()
        assert response.status_code == 200
        self.elements, self.open = [], []
        self.feed(response.content.decode())
        self.close()

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in self.VOID:
            self.open.append(self.elements[-1])

    def handle_startendtag(self, tag, attrs):
        self.elements.append(Element(tag, dict(attrs), [], list(self.open)))

    def handle_endtag(self, tag):
        while self.open and self.open.pop().tag != tag:
            pass

    def handle_data(self, data):
        for element in self.open:
            element.parts.append(data)

    def all(self, path):
        """Elements at ``tag.class tag.class``: the last of these names, within the others."""
        *outer, last = path.split()
        return [
            element
            for element in self.elements
            if element.is_a(last) and all(any(around.is_a(name) for around in element.within) for name in outer)
        ]

    def texts(self, path):
        return [element.text for element in self.all(path)]

    def values(self, path, attribute):
        return [element.attrs.get(attribute) for element in self.all(path)]


class Element(NamedTuple):
    tag: str
    attrs: dict
    parts: list
    within: list

    @property
    def text(self):
        return " ".join("".join(self.parts).split())

    def is_a(self, name):
        tag, _point, kind = name.partition(".")
        return self.tag == tag and (not kind or kind in (self.attrs.get("class") or "").split())


# What no page of ours has, wherever it came from.
FOREIGN = frozenset({"base", "iframe", "img", "math", "mtext", "object", "source", "style", "video"})


def acting(page):
    """What would do something that is not ours: elements, handlers, addresses."""
    return [
        (element.tag, element.attrs)
        for element in page.elements
        if element.tag in FOREIGN
        or (element.tag == "script" and (element.text or not element.attrs["src"].startswith("/static/")))
        or any(name.startswith("on") for name in element.attrs)
        or any((element.attrs.get(name) or "").startswith(("javascript:", "//")) for name in ("href", "src", "data"))
        or (element.tag == "body" and element.within[1:])
    ]


def the_list(page, evil):
    assert page.texts("td.tl-whose a") == [evil]
    assert page.texts("td.tl-how span.tl-why") == [f"{evil}, by {evil}"]
    assert page.values("td.tl-pick input", "aria-label") == [f"Choose account.welcome#{evil} of {evil}"]
    assert acting(page) == []


def the_list_asked_for(page, evil):
    chosen = [option for option in page.all("form.tl-filters option") if "selected" in option.attrs]
    kept = [field.attrs["value"].lstrip("?") for field in page.all("form input") if field.attrs.get("name") == "where"]
    chips = [f"{name}: {evil} ×" for name in ("Timeline", "Task", "Kind", "Search")]

    assert page.values("p.tl-q input", "value") == [evil]
    assert [(option.text, option.attrs["value"]) for option in chosen[1:]] == [(evil, evil)] * 3
    assert page.texts("ul.tl-chips li")[:-1] == chips
    assert [parse_qs(where)["q"] for where in kept] == [[evil]]
    assert acting(page) == []


def the_task(page, row, evil):
    facts = dict(zip(page.texts("dl.tl-facts dt"), page.texts("dl.tl-facts dd"), strict=True))
    story, log = page.texts("ol.tl-story li"), page.texts("table.tl-log td.tl-long")

    assert page.texts("h1 span") == [evil]
    assert page.texts("div.tl-head span.tl-why") == [f"{evil}, by {evil}"]
    assert facts["Entity"] == f"{evil} user {row.entity_id}"
    assert facts["Run"].startswith(f"account {evil}, started ")
    assert facts["Run"].endswith(f": {evil}")
    assert facts["Cause"].startswith(f"event {evil}, ")
    assert facts["Cause"].endswith(f" by {evil} {evil}")
    assert (facts["Key"], facts["Queue"], facts["Worker"]) == (evil, f"{evil} · priority 0", evil)
    assert story[0].endswith(f" with the event {evil}.")
    assert story[2].endswith(f" by {evil}.")
    assert story[3].endswith(f": {evil}: {evil}.")
    assert page.texts("table.tl-trace summary") == [Truncator(f"{evil}: {evil}").chars(200)]
    assert page.texts("td.tl-long pre") == [evil]
    assert page.texts("dl.tl-parts dt") == [evil, evil]
    assert [json.loads(text) for text in page.texts("dl.tl-parts dd")[:1]] == [[evil]]
    assert page.texts("dl.tl-parts dd")[1] == evil
    assert page.texts("dl.tl-data pre") == [evil]
    assert evil in " ".join(page.texts("table.tl-trace td.tl-long"))
    assert log == [f"operator {evil}", evil] * 2
    assert acting(page) == []


def the_entity(page, row, evil):
    runs = page.texts("table.tl-table td.tl-long")

    assert page.texts("h1") == [f"Timeline of {evil} user {row.entity_id}"]
    assert page.values("figure.tl-picture", "aria-label")[0].startswith(f"Past, now and future of {evil}. ")
    assert page.texts("g.tl-mark title")[0].endswith(f": discarded – {evil}, by {evil}")
    assert page.texts("table.tl-items td.tl-long") == [f"{evil}, by {evil}"]
    assert runs[1:] == [f"account {evil}", evil]
    assert acting(page) == []


def before_an_action(page, evil):
    assert page.texts("table.tl-rows td.tl-whose a") == [evil]
    assert page.texts("table.tl-rows td.tl-how span.tl-why") == [f"{evil}, by {evil}"]
    assert acting(page) == []


class TestEveryPage:
    """Each text is whole, in the places where it belongs; and nothing acts."""

    def test_shows_it_as_text(self, operator, row, evil):
        the_list(Page(operator.get(LIST, {"state": "discarded"})), evil)
        the_list_asked_for(Page(operator.get(LIST, {"q": evil, "timeline": evil, "task": evil, "kind": evil})), evil)
        the_task(Page(operator.get(detail(row))), row, evil)
        the_entity(Page(operator.get(ENTITY, {"label": row.entity_label, "id": row.entity_id})), row, evil)
        for action in ("redrive", "cancel"):  # The first can be done; the second cannot, and says of what.
            before_an_action(Page(operator.post(ACT, {"action": action, "task": row.pk, "where": evil})), evil)

    def test_shows_steps_and_what_is_asked_about_them_as_text(self, operator, about, order, evil):
        row = resting(about, order)
        recorded(row, evil[:150], result={evil: evil})
        recorded(row, f"!{evil[:149]}", "begun")
        name = {"action": "step_happened", "task": row.pk, "step": evil}

        page = Page(operator.get(detail(row)))
        asked = Page(operator.post(ACT, {**name, "confirmed": 1, "result": evil, "reason": evil}))

        assert [json.loads(text) for text in page.texts("table.tl-steps pre")] == [{evil: evil}]
        assert acting(page) == []
        assert acting(asked) == []

    def test_shows_what_was_typed_again_as_text(self, operator, about, order, evil):
        asked = {"action": "move", "task": about(order).pk, "confirmed": 1, "reason": evil, "at": evil}
        page = Page(operator.post(ACT, asked))
        typed = {element.attrs.get("name"): element for element in page.elements}

        assert (typed["reason"].text or typed["reason"].attrs.get("value")) == evil
        assert typed["at"].attrs["value"] == evil
        assert acting(page) == []

    def test_shows_the_name_of_whoever_acted_as_text(self, person, browse, about, order, evil):
        mallory = person("mallory", *["view_scheduledtask", "cancel_scheduledtask"])
        type(mallory).objects.filter(pk=mallory.pk).update(email=evil)
        mallory.refresh_from_db()
        client, row = browse(mallory), about(order)

        client.post(ACT, {"action": "cancel", "task": row.pk, "confirmed": 1, "reason": evil})
        page = Page(client.get(detail(row)))

        assert LogEntry.objects.get(task=row).actor == evil
        assert page.texts("table.tl-log td.tl-long") == [f"operator {evil}", evil]
        assert acting(page) == []
        assert AdminLogEntry.objects.count() == 0


class Loud(Timeline):
    """Its handler's message is markup."""

    entity = "testapp.Order"

    @task()
    def shout(self, order):
        raise ValueError(EVIL[0])


@pytest.mark.timeline(raises=False)
def test_a_handlers_own_error_is_text(operator, order, clock):
    with only_timelines(Loud):
        row = schedule("loud.shout", order, at=clock.now).task
        clock.advance(minutes=1)
        body = operator.get(detail(row)).content.decode()

    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in body
    assert "<script>alert" not in body


def test_nothing_of_ours_is_inline(operator, order, about):
    """A strict Content-Security-Policy, which the site sends, lets nothing of that kind work."""
    row = about(order)

    for answer in (
        operator.get(LIST),
        operator.get(detail(row)),
        operator.get(ENTITY, {"label": "testapp.order", "id": order.pk}),
    ):
        body = answer.content.decode()
        assert answer["Content-Security-Policy"].startswith("default-src 'self';")
        assert " style=" not in body
        assert "<style" not in body
        assert "onclick" not in body
        assert "<script>" not in body
