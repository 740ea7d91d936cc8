"""``timeline_draw``: a machine as a file."""

from __future__ import annotations

from io import StringIO
from xml.etree import ElementTree

import pytest
from django.core.management import CommandError, call_command

from tests.machines import Booking
from tests.reading.test_machine_pictures import Door
from timeline import Machine
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


@pytest.fixture(autouse=True)
def _known():
    with only_timelines(Booking, Door, Hostile, Alerts):
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

    def test_gives_text_for_mermaid(self):
        assert drawn("door", "--mermaid").startswith("stateDiagram-v2\n")

    @pytest.mark.parametrize("name", ["dorr", "alerts", "reading.Nobody"])
    def test_names_what_is_no_machine(self, name):
        with pytest.raises(CommandError):
            drawn(name)
