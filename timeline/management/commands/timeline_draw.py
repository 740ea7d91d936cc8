"""``manage.py timeline_draw trial > trial.svg``: a timeline or a machine as a picture, or as text for Mermaid."""

from __future__ import annotations

from typing import Any, Final

from django.core.management.base import CommandError, CommandParser
from django.template.loader import render_to_string

from timeline.exceptions import TimelineError
from timeline.features.machines.mermaid import table_as_mermaid
from timeline.features.machines.pictures import machine_picture
from timeline.management.shared import PipedCommand
from timeline.reading.text_pictures import mermaid_of
from timeline.reading.timeline_pictures import timeline_picture
from timeline.registry import registry

# In the admin its stylesheet does this; a file stands alone, on light and dark.
STYLE: Final = """
svg { background: #fff; font: 11px sans-serif; fill: #222; }
.tl-m-state rect { fill: #fff; stroke: #8a8a8a; }
.tl-m-working rect { fill: #eef5fb; stroke: #215a86; }
.tl-m-end rect { fill: #f1f1f1; stroke: #222; stroke-width: 2; }
.tl-m-any rect { stroke-dasharray: 4 3; }
.tl-m-name { font-size: 12.5px; font-weight: bold; }
.tl-m-lane path { fill: none; stroke-width: 1.3; }
.tl-m-hue0 path { stroke: #215a86; } .tl-m-hue1 path { stroke: #16703b; }
.tl-m-hue2 path { stroke: #8a4b08; } .tl-m-hue3 path { stroke: #666; }
.tl-m-hue0 .tl-m-tip { fill: #215a86; } .tl-m-hue1 .tl-m-tip { fill: #16703b; }
.tl-m-hue2 .tl-m-tip { fill: #8a4b08; } .tl-m-hue3 .tl-m-tip { fill: #666; }
.tl-t-word { font-size: 12.5px; font-weight: bold; }
.tl-t-axis { fill: none; stroke: #8a8a8a; stroke-width: 1.5; }
.tl-t-time path { stroke: #ccc; stroke-dasharray: 2 4; }
.tl-t-time circle { fill: #fff; stroke: #666; stroke-width: 1.5; }
.tl-t-anchor circle { fill: #215a86; stroke: #215a86; }
.tl-t-time text, .tl-t-key, .tl-t-doc, .tl-t-sign { fill: #666; }
.tl-t-edge { fill: none; stroke: #666; stroke-width: 1.5; }
.tl-t-tip { fill: #666; }
.tl-t-card > rect { fill: #f8f8f8; stroke: #ccc; }
.tl-t-bar { fill: none; stroke: #215a86; stroke-width: 3; }
.tl-t-wait .tl-t-bar { stroke: #8a4b08; }
.tl-t-series .tl-t-bar, .tl-t-each .tl-t-bar { stroke-dasharray: 7 3; }
.tl-t-title { font-size: 13px; font-weight: bold; }
.tl-t-sign { font-size: 14px; }
.tl-t-drawn, .tl-m-timer { fill: none; stroke: #666; stroke-width: 1.3; stroke-linecap: round; }
.tl-t-guard { fill: #8a4b08; }
.tl-t-chip rect { fill: #f8f8f8; stroke: #8a8a8a; }
.tl-t-chip text { font-weight: bold; }
""".strip()


class Command(PipedCommand):
    """Draws."""

    help = (
        "Draws a timeline: its tasks on an axis of time, or a machine from its table. As SVG, or with --mermaid as text for"
        " Mermaid. Asks no database."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the timeline and the form."""
        parser.add_argument("timeline", help="Its name, e.g. trial; or its class, e.g. accounts.Trial.")
        parser.add_argument("--mermaid", action="store_true", help="Print text for Mermaid.")

    # The parameters are named after the options.
    def handle(self, *args: Any, timeline: str, mermaid: bool, **options: Any) -> None:
        """Print the drawing."""
        try:
            definition = registry.timeline(_named(timeline))
        except TimelineError as error:
            raise CommandError(str(error)) from error
        if mermaid:
            drawing = table_as_mermaid(definition) if definition.has_states else mermaid_of(definition)
        elif definition.has_states:
            drawn = {"picture": machine_picture(definition), "style": STYLE}
            drawing = render_to_string("timeline/machine.svg", drawn)
        else:
            drawn = {"picture": timeline_picture(definition), "style": STYLE}
            drawing = render_to_string("timeline/timeline.svg", drawn)
        self.stdout.write(drawing, ending="")


def _named(timeline: str) -> str:
    """Its name, where it was given as app and class."""
    for known in registry:
        module = known.cls.__module__
        if timeline == f"{module.removesuffix('.timelines').rpartition('.')[2]}.{known.cls.__name__}":
            return known.name
    return timeline
