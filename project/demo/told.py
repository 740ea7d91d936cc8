"""The story told in the terminal: the clock jumps from due row to due row."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from project.demo.browsers import InProcessBrowser, Visit
from project.demo.people import Action, Person
from project.demo.summary import print_summary
from timeline.testing import StoryClock

SHOWN = 3  # So many sign-ups are printed.


def tell(people: list[Person], days: int, console: Console) -> None:
    """
    Let people sign up on the first day and live through so many days, then say what became of their tasks.

    Args:
        people: Who signs up, through the site's form.
        days: How long the story is, from the first sign-up.
        console: Where it is shown.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(40),
        MofNCompleteColumn(),
        TextColumn("days · {task.fields[ran]:,} tasks run"),
    )
    with StoryClock(datetime.now(UTC).replace(microsecond=0), raises=False) as clock:  # Mail servers are down at times.
        with Progress(*columns, console=console) as progress:
            bar = progress.add_task("The story", total=days, ran=0)
            ran = 0
            for step in live_through(people, days, clock):
                ran += step.ran
                if step.said and step.person in people[:SHOWN]:
                    progress.console.print(step.said, style="dim", highlight=False, soft_wrap=True)
                progress.update(bar, completed=step.days, ran=ran)
        print_summary(people, clock.now, console)


class Step(NamedTuple):
    """
    Something that happened.

    Args:
        days: Since the story began.
        ran: How many tasks ran since the step before.
        person: Who did something; None: nobody, the story ends here.
        said: What they sent and were answered on signing up; else empty.
    """

    days: int
    ran: int
    person: Person | None = None
    said: str = ""


def live_through(people: list[Person], days: int, clock: StoryClock) -> Iterator[Step]:
    """Let people sign up and act, each in their time, and run what falls due, for so many days from the clock's time."""
    begin = clock.now
    end = begin + timedelta(days=days)
    for at, visit, action in _course(people, begin):
        if at > end:
            break
        ran = len(clock.run_until(at))
        yield Step((at - begin).days, ran, visit.person, _act(visit, action))
    yield Step(days, len(clock.run_until(end)))


def _act(visit: Visit, action: Action | None) -> str:
    """Let a person do something; None: sign up. Says what was sent and answered on signing up."""
    if action is None:
        return visit.sign_up()
    visit.do(action)
    return ""


def _course(people: list[Person], begin: datetime) -> Iterator[tuple[datetime, Visit, Action | None]]:
    """What happens when: sign-ups spread over the first day, then each person's actions, in order of time."""
    agenda: list[tuple[datetime, int, Visit, Action | None]] = []
    for number, person in enumerate(people):
        visit = Visit(person, InProcessBrowser())
        joined = begin + timedelta(days=1) * number / max(len(people), 1)
        heapq.heappush(agenda, (joined, len(agenda), visit, None))
        for day, action in person.actions:
            heapq.heappush(agenda, (joined + timedelta(days=day), len(agenda), visit, action))
    while agenda:
        at, _number, visit, next_action = heapq.heappop(agenda)
        yield at, visit, next_action
