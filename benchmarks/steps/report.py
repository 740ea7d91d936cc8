"""The figures as tables in the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.comparing.results import spread
from benchmarks.steps.plan import GOALS, KINDS, MOST_BYTES, Wanted

WIDTH = 120  # At least: what is narrower breaks the figures.


def show(results: dict[str, Any]) -> None:
    """Print what was measured, and what is wanted of it."""
    console = Console(width=max(WIDTH, Console().width))
    console.print("; ".join(f"{name} {value}" for name, value in results["machine"].items()), style="dim")
    console.print(_rates(results), _wanted(results))
    if killed := results.get("killed"):
        said = (
            "{seconds:.1f} s after a worker was killed, another went on with its task. Steps entered again: {repeated}"
        )
        console.print(said.format(**killed))
    for peer in results["peers"].values():
        settings = ", ".join(f"{setting['name']} {setting['value']}" for setting in peer["settings"])
        console.print(f"{peer['title']}: {peer['package']} {peer['version']}. {peer['notes']} {settings}", style="dim")
        for found in peer["miscounted"]:
            console.print(
                f"{peer['title']} wrote what it did not record, or not what it did: {found}", style="bold red"
            )
    for name, reason in results["left_out"].items():
        console.print(f"{name} is left out: {reason}", style="bold red")


def ratios(results: dict[str, Any], wanted: Wanted) -> list[float]:
    """How many times as fast, in each round: what else goes on here changes from one to the next. Empty: not measured."""
    what, than = (
        results["peers"].get(name, {}).get("steps_a_second", {}).get(kind, [])
        for name, kind in (wanted.what, wanted.than)
    )
    return [one / other for one, other in zip(what, than, strict=False)]


def _rates(results: dict[str, Any]) -> Table:
    table = Table(title=f"Steps a second, one worker: median of {results['rounds']} (least–most)", title_justify="left")
    table.add_column()
    table.add_column("at a time", justify="right")
    for kind in KINDS.values():
        table.add_column(kind, justify="right")
    for peer in results["peers"].values():
        rates = (peer["steps_a_second"].get(kind) for kind in KINDS)
        table.add_row(
            peer["title"], str(peer["slots"]), *(_spread(values, ",.0f") if values else "–" for values in rates)
        )
    return table


def _wanted(results: dict[str, Any]) -> Table:
    table = Table(title="What is wanted: median of the rounds (least–most)", title_justify="left")
    table.add_column()
    for name in ("measured", "wanted", "met"):
        table.add_column(name, justify="right")
    for wanted in GOALS:
        if values := ratios(results, wanted):
            (what, kind), (than, other) = wanted.what, wanted.than
            against = f"{than}, {KINDS[other]}" if other != kind else than
            met = "yes" if spread(values).median >= wanted.least else "no"
            table.add_row(f"{what} / {against}: {KINDS[kind]}", _spread(values, ".2f"), f"≥ {wanted.least:g}", met)
    if sizes := results["bytes_of_a_record"]:
        met = "yes" if spread(sizes).median <= MOST_BYTES else "no"
        table.add_row("bytes of a recorded step, with its indexes", _spread(sizes, ".0f"), f"≤ {MOST_BYTES}", met)
    return table


def _spread(values: Iterable[float], how: str) -> str:
    middle, least, most = (format(value, how) for value in spread(list(values)))
    return middle if least == most else f"{middle} ({least}–{most})"
