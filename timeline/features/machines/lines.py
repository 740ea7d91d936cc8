"""What waits for people, line by line as pages show it: what is asked, why, until when, who has it, and what one can do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from django.utils.translation import pgettext

from timeline.admin.actions import wordings
from timeline.admin.pages import policy_of
from timeline.admin.references import Called, Named, actor_of, called
from timeline.admin.subject import Reader
from timeline.features.machines.people import Asking, whys_asked, whys_read
from timeline.features.machines.takes import Item, item_of, takings_asked, takings_read
from timeline.policy import APPROVALS
from timeline.reading.guard_words import right_in_words
from timeline.registry import registry
from timeline.store.multi_query import gather

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from uuid import UUID

    from django.http import HttpRequest
    from django_stubs_ext import StrPromise

    from timeline.admin.pages import FeaturePages, Pages
    from timeline.features.machines.pictures import MachinePicture
    from timeline.features.machines.reading import MachineLine
    from timeline.features.waits.reading import Undecided
    from timeline.models import ScheduledTask, Taking, TimelineRun
    from timeline.policy import Action


class WaitingPerson(NamedTuple):
    """
    Something that waits for people, as the pages show it.

    Args:
        item: What can be taken.
        state: Of a machine, in words; empty: it is a task.
        state_name: The same as in its code, if the words are others.
        why: What the event said that led here; empty: nothing, or the reader may not know.
        since, until: From when and until when; None: without end.
        is_late: Whether that is over.
        rights: Who may answer: each permission in words, and its name.
        asked: What can be said, in words, by whoever may.
        buttons: What the user may say, in words, each with its address.
        task, called: What asks for approval; None: it is a machine.
        verbs: What the user may do with the task, with the words of its buttons.
        taking, is_mine: Who has it, and whether that is the user; None: nobody.
    """

    item: Item
    entity: Named
    timeline: str
    key: str
    state: str
    why: str
    since: datetime
    until: datetime | None
    is_late: bool
    rights: list[tuple[str, str]]
    asked: list[str]
    buttons: list[tuple[str, str]]
    task: ScheduledTask | None = None
    called: Called | None = None
    verbs: Sequence[tuple[Action, StrPromise]] = ()
    is_held: bool = False
    state_name: str = ""
    taking: Taking | None = None
    is_mine: bool = False

    @property
    def may_take(self) -> bool:
        """Whether the user may take it: who may answer."""
        return bool(self.buttons or self.verbs)


@dataclass(frozen=True, slots=True)
class PersonLines:
    """
    Makes lines for one user.

    Args:
        address: Gives the address of a page by its name.
        takings: Who has what, by its id.
        whys: What the event said that led to each, by its id.
    """

    request: HttpRequest
    address: Callable[..., str]
    now: datetime
    takings: Mapping[UUID, Taking]
    whys: Mapping[UUID, str]

    @classmethod
    def of(
        cls,
        pages: Pages | FeaturePages,
        request: HttpRequest,
        found: Iterable[Asking | Undecided],
        now: datetime,
        *,
        whys: bool = True,
    ) -> PersonLines:
        """For what was found: one statement."""
        found, using = list(found), pages.alias
        reader, items = Reader(policy_of(request), request.user), [item_of(each) for each in found]
        asked = whys_asked(found, using=using) if whys else []
        takings, *read = gather([takings_asked(items, using=using), *asked], using=using)
        why = whys_read(found, read, payload=reader.payload, people=reader.reads_people_of) if whys else {}
        return cls(request, pages.address, now, takings_read(items, takings, now), why)

    def line(self, each: Asking | Undecided, entity: Named) -> WaitingPerson:
        """What is shown of it."""
        item = item_of(each)
        taking = self.takings.get(item.id)
        shared: dict[str, Any] = {
            "item": item,
            "entity": entity,
            "why": self.whys.get(item.id, ""),
            "taking": taking,
            "is_mine": taking is not None and taking.holder == actor_of(self.request.user),
        }
        return self._of_run(each, shared) if isinstance(each, Asking) else self._of_task(each, shared)

    def _of_task(self, each: Undecided, shared: dict[str, Any]) -> WaitingPerson:
        task = each.task
        may = [action for action in policy_of(self.request).actions(self.request.user, task) if action in APPROVALS]
        return WaitingPerson(
            **shared,
            timeline=task.timeline,
            key=task.run.key if task.run is not None else "",
            state="",
            since=each.since,
            until=each.until,
            is_late=False,
            rights=[(right_in_words(each.right), each.right)],
            asked=[str(wordings()[action].verb) for action in sorted(APPROVALS)],
            buttons=[],
            task=task,
            called=called(task.full_key),
            verbs=[(action, wordings()[action].verb) for action in may],
            is_held=each.is_held,
        )

    def _of_run(self, each: Asking, shared: dict[str, Any]) -> WaitingPerson:
        run = each.run
        known = registry.timeline(run.timeline)
        return WaitingPerson(
            **shared,
            timeline=run.timeline,
            key=run.key,
            state=known.title_of(run.state) or run.state,
            state_name=run.state if known.title_of(run.state) else "",
            since=run.state_at or self.now,
            until=each.due_at,
            is_late=each.due_at is not None and each.due_at <= self.now,
            rights=_rights_of(run),
            asked=[known.button_of(event) for event in known.asked_in.get(run.state, ())],
            buttons=buttons_of(self.address, run, each.events),
        )


def buttons_of(address: Callable[..., str], run: TimelineRun, events: Iterable[str]) -> list[tuple[str, str]]:
    """What can be said, in words, each with its address; of the run as it is now, not as it may come there again."""
    known = registry.timeline(run.timeline)
    return [
        (known.button_of(event), f"{address('say')}?{urlencode({'run': run.pk, 'moves': run.moves, 'event': event})}")
        for event in events
    ]


def with_buttons(
    pages: Pages, request: HttpRequest, lines: Iterable[tuple[MachineLine, MachinePicture | None]]
) -> list[tuple[MachineLine, MachinePicture | None, list[tuple[str, str]]]]:
    """The machines of an entity, each with what the user may say of it."""
    policy, using = policy_of(request), pages.alias
    return [
        (line, picture, buttons_of(pages.address, line.run, policy.asked_of(request.user, line.run, using=using)))
        for line, picture in lines
    ]


def _rights_of(run: TimelineRun) -> list[tuple[str, str]]:
    """Who may say one of the events that a run asks for in its state."""
    definition = registry.timeline(run.timeline)
    asks = [definition.asks[event] for event in definition.asked_in.get(run.state, ())]
    rights = [(right_in_words(name), name) for name in sorted({name for ask in asks for name in ask.permissions})]
    return [*rights, (pgettext("timeline", "the owner"), "")] if any(ask.owner for ask in asks) else rights
