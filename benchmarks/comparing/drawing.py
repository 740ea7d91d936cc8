"""A chart as SVG: bars and real text, readable on light and dark pages."""

from __future__ import annotations

from html import escape
from statistics import median
from typing import Any, Final

BARS: Final = {
    "drain.nothing.2": "no-op",
    "drain.entity.2": "entity by the ORM",
    "drain.count.2": "one UPDATE",
    "drain.shared.2": "UPDATE, shared",
}
OFFERED_BY_SOME: Final = "drain.shared.2"  # The others have no bar for it.
WIDTH, LEFT, RIGHT = 760, 210, 90
TOP, BAR, GAP, BETWEEN = 64, 14, 3, 14
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.title { font-size: 15px; font-weight: 600; }
.page { fill: #ffffff; }
.bar0 { fill: #2563eb; }
.bar1 { fill: #c2410c; }
.bar2 { fill: #15803d; }
.bar3 { fill: #86198f; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .page { fill: #0d1117; }
  .bar0 { fill: #6ea8fe; }
  .bar1 { fill: #fb923c; }
  .bar2 { fill: #4ade80; }
  .bar3 { fill: #e879f9; }
}
"""


def draw(peers: dict[str, Any]) -> str:
    """Draw bars for each peer: jobs a second, two workers. What was asked of nobody has none."""
    asked = [name for name in BARS if any(name in peer["values"] for peer in peers.values())]
    found = {
        peer["title"]: {
            name: median(peer["values"][name]) if name in peer["values"] else None
            for name in asked
            if name in peer["values"] or name != OFFERED_BY_SOME
        }
        for peer in peers.values()
    }
    most = max((value for values in found.values() for value in values.values() if value is not None), default=1.0)
    height = TOP + sum(map(_height, found.values())) + 8
    said = "; ".join(f"{title}: {', '.join(map(_say, values.values()))}" for title, values in found.items())
    kinds = ", ".join(BARS[name] for name in asked)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="title summary" '
        f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        '<title id="title">Jobs a second with two workers</title>',
        f'<desc id="summary">By kind of job: {kinds}. {escape(said)}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}"/>',
        '<text class="title" x="12" y="24">Jobs a second with two workers</text>',
        *_legend(asked),
    ]
    top = TOP
    for title, values in found.items():
        parts += _bars(title, values, top, most)
        top += _height(values)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend(asked: list[str]) -> list[str]:
    parts = []
    for position, name in enumerate(asked):
        x = LEFT + position * 136
        parts.append(f'<rect class="{_class(name)}" x="{x}" y="37" width="12" height="12"/>')
        parts.append(f'<text x="{x + 18}" y="48">{BARS[name]}</text>')
    return parts


def _bars(title: str, values: dict[str, float | None], top: float, most: float) -> list[str]:
    parts = [f'<text x="{LEFT - 10}" y="{top + BAR + 6}" text-anchor="end">{escape(title)}</text>']
    for position, (name, value) in enumerate(values.items()):
        y = top + position * (BAR + GAP)
        width = (value or 0) / most * (WIDTH - LEFT - RIGHT)
        parts.append(f'<rect class="{_class(name)}" x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR}"/>')
        parts.append(f'<text x="{LEFT + width + 6:.1f}" y="{y + BAR - 2}">{_say(value)}</text>')
    return parts


def _height(values: dict[str, float | None]) -> int:
    return len(values) * (BAR + GAP) + BETWEEN


def _class(name: str) -> str:
    return f"bar{list(BARS).index(name)}"


def _say(value: float | None) -> str:
    return "not measured" if value is None else f"{value:,.0f}"
