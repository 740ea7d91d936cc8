"""``timeline_draw``: a timeline or a machine as a file."""

from __future__ import annotations

from io import StringIO
from xml.etree import ElementTree

import pytest
from django.core.management import CommandError, call_command

from tests.features.machines.test_reading_pictures import Door
from tests.machines import Booking
from timeline import Machine, Timeline, after, task
from timeline.testing import only_timelines
from timeline.timelines import Alerts


def drawn(*options):
    out = StringIO()
    call_command("timeline_draw", *options, stdout=out)
    return out.getvalue()


class Hostile(Machine):
    entity = "testapp.Order"
    initial = "<script>alert(1)</script>"
    table = {"<script>alert(1)</script>": {'"><b>': "&amp;"}, "&amp;": {}}


class Care(Timeline):
    entity = "testapp.Order"
    starts_on = '"><script>alert(1)</script>'
    exits = {"order.returned": "<b>&"}

    @task(after(days=3), title="<script>alert(1)</script>")
    def greet(self, order):
        """Say <b>hello</b> & welcome."""

    @task(after(greet, hours=5))
    def follow_up(self, order): ...


@pytest.fixture(autouse=True)
def _known():
    with only_timelines(Booking, Door, Hostile, Alerts, Care):
        yield


class TestDraw:
    @pytest.mark.parametrize("name", ["booking", "machines.Booking", "door", "hostile"])
    def test_gives_a_picture_that_is_well_formed_and_has_all_states(self, name):
        root = ElementTree.fromstring(drawn(name))  # noqa: S314 (our own text)

        texts = {text for element in root.iter() if (text := (element.text or "").strip())}
        machine = {"machines.Booking": Booking, "booking": Booking, "door": Door, "hostile": Hostile}[name]
        shown = {text.removeprefix("▸ ").removesuffix(" ■") for text in texts}
        assert set(machine.definition.machine.states) <= shown
        assert not [element for element in root.iter() if "script" in element.tag]

    @pytest.mark.parametrize("name", ["care", "test_draw.Care", "alerts"])
    def test_draws_what_is_no_machine_too(self, name):
        root = ElementTree.fromstring(drawn(name))  # noqa: S314 (our own text)

        assert not [element for element in root.iter() if "script" in element.tag or element.tag.endswith("}a")]
        if name == "alerts":
            return
        texts = {(element.text or "").strip() for element in root.iter()}
        assert {
            "<script>alert(1)</script>",
            "Say <b>hello</b> & welcome.",
            "follow_up",
            "■ order.returned → <b>&",
        } <= texts

    def test_gives_text_for_mermaid(self):
        assert drawn("door", "--mermaid").startswith("stateDiagram-v2\n")
        assert drawn("care", "--mermaid").startswith("flowchart LR\n")

    @pytest.mark.parametrize("name", ["dorr", "reading.Nobody"])
    def test_names_what_is_unknown(self, name):
        with pytest.raises(CommandError):
            drawn(name)
