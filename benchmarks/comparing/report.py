"""The pages and the chart of the documentation, from the figures: ``python -m benchmarks.comparing.report``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.comparing.drawing import draw
from benchmarks.comparing.plan import FOLDER, PUBLISHED, SLEEPS
from benchmarks.comparing.results import read, spread, worst

PAGE = Path(__file__).with_name("page.md")
DOCS = FOLDER.parent / "docs" / "explanation"
# Chapters that stand on a page of their own.
METHOD = ("How it is measured", "Steps", "Beside an old snapshot", "Settings")
TITLES = {
    "nothing": "no-op",
    "entity": "entity by the ORM",
    "count": "UPDATE",
    "shared": "UPDATE, shared",
    "many": "UPDATE of many",
    "brief": "5 ms",
    "long": "200 ms",
}


def page(results: dict[str, Any]) -> str:
    """Write the text of both pages."""
    peers, plan = results["peers"], results["plan"]
    return PAGE.read_text(encoding="utf-8").format(
        runs=times(plan["runs"]),
        window=f"{plan['window']:g}",
        rows=f"{plan['rows']:,}",
        bulk=f"{plan['bulk']:,}",
        machine="; ".join(f"{name} {value}" for name, value in results["machine"].items()) + ".",
        scheduling=figures(
            peers,
            {"schedule_one": "one by one", "schedule_many": "bulk", "bytes.waiting": "waiting", "bytes.done": "done"},
        ),
        drains=drains(peers, plan),
        beside=beside(results["beside"]) if "beside" in results else "",
        latency=figures(peers, {"latency.p50": "half within", "latency.p99": "99 of 100 within"}),
        growth=growth(peers, plan),
        promises=promises(peers),
        left_out=left_out(results["left_out"]),
        settings=settings(peers),
    )


def pages(results: dict[str, Any]) -> dict[str, str]:
    """Divide it into the page of the figures and that of the method, by their file names."""
    first, *parts = re.split(r"^(?=## )", page(results), flags=re.MULTILINE)
    method = [part for part in parts if part.startswith(tuple(f"## {title}\n" for title in METHOD))]
    shown = [part for part in parts if part not in method]
    return {
        "benchmarks.md": first + "".join(shown).rstrip() + "\n",
        "benchmarks-method.md": "# How the benchmarks are measured\n\n" + "".join(method),
    }


def figures(peers: dict[str, Any], columns: dict[str, str]) -> str:
    """Make a table of measures, a row for each peer."""
    rows = [[peer["title"], *(cell(peer, measure) for measure in columns)] for peer in peers.values()]
    return table(["", *columns.values()], rows)


def drains(peers: dict[str, Any], plan: dict[str, Any]) -> str:
    """Make the table of drains."""
    asked = [(job, workers) for job, _ in plan["jobs"] for workers in plan["workers"]]
    rows = []
    for peer in peers.values():
        cells = [cell(peer, f"drain.{job}.{workers}", ideal(peer, job, workers)) for job, workers in asked]
        rows.append([peer["title"], str(peer["slots"]), *cells])
    return table(["", "slots", *(f"{TITLES[job]}, {workers}" for job, workers in asked)], rows)


def beside(results: dict[str, Any]) -> str:
    """Make the table of drains that were measured by themselves, and say when and how."""
    peers, plan = results["peers"], results["plan"]
    sizes = ", ".join(f"{jobs:,} of *{TITLES[job]}*" for job, jobs in plan["jobs"])
    said = [
        f"Measured by themselves on {results['when']}, all in one go ({times(plan['runs'])}, a window of {plan['window']:g} s, "
        f"jobs: {sizes}): {results['how']} Compare within this table, not with the one above.",
        drains(peers, plan),
        "Counted: " + "; ".join(f"{peer['title']} {counted(peer)}" for peer in peers.values()) + ".",
        left_out(results["left_out"]),
    ]
    return "\n\n".join(part for part in said if part)


def times(runs: int) -> str:
    """Say how often each figure was taken."""
    return f"{runs} runs" if runs > 1 else "a single run"


def growth(peers: dict[str, Any], plan: dict[str, Any]) -> str:
    """Make the table of polls, claims and cancels."""
    asked = [(name, size) for name in ("poll", "claim", "cancel") for size in plan["sizes"]]
    rows = [[peer["title"], *(cell(peer, f"{name}.{size}") for name, size in asked)] for peer in peers.values()]
    return table(["", *(f"{name}, {size:,}" for name, size in asked)], rows)


def promises(peers: dict[str, Any]) -> str:
    """Make the table of what each does, and what came of the counters."""
    rows = []
    for peer in peers.values():
        version = f"{peer['package']} {peer['version']}, Python {peer['python']}"
        rows.append([peer["title"], version, "yes" if peer["together"] else "no", counted(peer), peer["notes"]])
    return table(["", "version", "one commit", "counted", "notes"], rows, right=False)


def counted(peer: dict[str, Any]) -> str:
    """Compare what the jobs wrote with what is recorded of them."""
    found = worst(peer["counted"])
    return "as completed" if found is None else f"{found['counted']:,} for {found['completed']:,} completed"


def settings(peers: dict[str, Any]) -> str:
    """List what is not a default, with its reason."""
    lines = [
        f"- {peer['title']}, `{setting['name']}`: {setting['value']}; {setting['why']}."
        for peer in peers.values()
        for setting in peer["settings"]
    ]
    return "\n".join(lines)


def left_out(reasons: dict[str, str]) -> str:
    """Say who is missing, and why."""
    return "\n".join(f"Left out here: {name} ({reason})." for name, reason in reasons.items())


def ideal(peer: dict[str, Any], job: str, workers: int) -> float | None:
    """Jobs a second that the slots allow, where a job only waits."""
    return workers * peer["slots"] / SLEEPS[job] if job in SLEEPS else None


def cell(peer: dict[str, Any], measure: str, best: float | None = None) -> str:
    """Write a figure, with its spread, and its share of the best."""
    values = peer["values"].get(measure)
    if not values:
        return "not offered" if any(f"{measure}.".startswith(f"{name}.") for name in peer["not_offered"]) else "–"
    middle, least, most = spread(values)
    share = f", {middle / best:.0%}" if best else ""
    return number(middle) + share + (f" ({number(least)}–{number(most)})" if len(values) > 1 else "")


def number(value: float) -> str:
    """Write as many digits as say something."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: bool = True) -> str:
    """Write a table in Markdown; figures stand on the right."""
    line = "|" + "|".join([" --- ", *[" ---: " if right else " --- "] * (len(head) - 1)]) + "|"
    return "\n".join([f"| {' | '.join(head)} |", line, *(f"| {' | '.join(row)} |" for row in rows)])


def main(output: Path = PUBLISHED, folder: Path = DOCS) -> None:
    """Write all."""
    results = read(output)
    for name, text in pages(results).items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "benchmarks.svg").write_text(draw(results["peers"]), encoding="utf-8")


if __name__ == "__main__":
    main()
