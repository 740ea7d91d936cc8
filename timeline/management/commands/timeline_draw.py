"""``manage.py timeline_draw booking > booking.svg``: a machine as a picture, or as text for Mermaid."""

from __future__ import annotations

from typing import Any, Final

from django.core.management.base import CommandError, CommandParser
from django.template.loader import render_to_string

from timeline.definition.machines import table_of
from timeline.exceptions import TimelineError
from timeline.management.piping import PipedCommand
from timeline.reading.machine_pictures import machine_picture
from timeline.reading.mermaid import mermaid_of
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
""".strip()


class Command(PipedCommand):
    """Draws a machine."""

    help = (
        "Draws a machine from its table: as SVG, or with --mermaid as a stateDiagram-v2 for Mermaid. Asks no database."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the machine and the form."""
        parser.add_argument("machine", help="Name of the machine, e.g. booking; or its class, e.g. portal.Booking.")
        parser.add_argument("--mermaid", action="store_true", help="Print text for Mermaid.")

    # The parameters are named after the options.
    def handle(self, *args: Any, machine: str, mermaid: bool, **options: Any) -> None:
        """Print the drawing."""
        try:
            definition = registry.timeline(_named(machine))
            table_of(definition)
        except TimelineError as error:
            raise CommandError(str(error)) from error
        if mermaid:
            self.stdout.write(mermaid_of(definition), ending="")
        else:
            drawn = {"picture": machine_picture(definition), "style": STYLE}
            self.stdout.write(render_to_string("timeline/machine.svg", drawn), ending="")


def _named(machine: str) -> str:
    """The name of a timeline that may be given as app and class."""
    for known in registry:
        module = known.cls.__module__
        if machine == f"{module.removesuffix('.timelines').rpartition('.')[2]}.{known.cls.__name__}":
            return known.name
    return machine
