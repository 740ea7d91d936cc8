"""
``to``: in a table, a state beside what it takes to come there, and what is done on the way. Several of them for one event are
a ``Choice``: the first whose condition holds. Pure rules: no database.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from timeline.payloads import as_text
from timeline.timing.keywords import known_keywords

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

    from timeline.features.machines.table import Answer, Target
    from timeline.models import TimelineRun

    Problem = tuple[str, str]

_NAMELESS: Final = "<lambda>"
_RAISED_IN: Final = "_timeline_raised_in"  # An attribute of errors.


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """
    A move, as conditions and effects are told of it.

    Args:
        event, payload, actor: As they were emitted.
        source, target: States. Of BACK, the state that it leads to.
        run: In its old state for a condition, in the new one for an effect.
    """

    event: str
    payload: Mapping[str, Any]
    actor: str
    source: str
    target: str
    run: TimelineRun


@dataclass(frozen=True, slots=True)
class Edge:
    """What ``to`` gives: one way to a target. No ``when``: it holds always. No ``do``: nothing is done on the way."""

    target: Answer
    when: Callable[..., object] | None = None
    do: Callable[..., object] | None = None
    title: StrOrPromise = field(default="", compare=False)

    def applies(self, entity: Any, passage: Passage) -> bool:
        """Ask its condition."""
        try:
            return self.when is None or bool(_called(self.when, entity, passage))
        except Exception as error:
            _note(error, "when", self.condition)
            raise

    def act(self, entity: Any, passage: Passage) -> None:
        """Have its effect."""
        try:
            if self.do is not None:
                _called(self.do, entity, passage)
        except Exception as error:
            _note(error, "do", self.effect)
            raise

    @property
    def condition(self) -> str:
        """The condition in words; empty: there is none."""
        return "" if self.when is None else str(self.title) or _in_words(self.when)

    @property
    def effect(self) -> str:
        """The effect in words; empty: there is none."""
        if self.do is None:
            return ""
        return str(self.title) if self.title and self.when is None else _in_words(self.do)

    @property
    def told(self) -> str:
        """Both, as they stand beside an arrow: ``[is domestic] / reserve stock``."""
        return told_way(self.condition, self.effect)


@dataclass(frozen=True, slots=True)
class Choice:
    """All ways that an event may take from a state, in the order in which they are asked."""

    edges: tuple[Edge, ...]

    @property
    def targets(self) -> tuple[Answer, ...]:
        """Where they lead."""
        return tuple(edge.target for edge in self.edges)

    @property
    def is_sure(self) -> bool:
        """Whether one of them always holds."""
        return self.edges[-1].when is None


@known_keywords
def to(
    target: Any,
    /,
    *,
    when: Callable[..., object] | None = None,
    do: Callable[..., object] | None = None,
    title: StrOrPromise = "",
) -> Edge:
    """
    In the table of a machine: where an event leads, if a condition holds; and what is done on the way.

    Several for one event stand in a list: the first whose condition holds is taken, and a state without ``to`` may be the last.
    If none holds, the state does not take the event. Both functions get the entity, or the entity and a ``Passage`` (event,
    payload, actor, source, target, run). They are called under the lock under which the run moves.

    Args:
        target: A state, ``BACK`` or ``STAY``; without ``do`` also ``IGNORE``.
        when: Says whether this way is taken. It only reads.
        do: Writes to the database, in the transaction of the move; if it raises, nothing has moved.
        title: The condition in words, for pages and pictures; without a condition, the effect. Left out: the function's name.
    """
    return Edge(target, when, do, title)


def told_way(condition: str, effect: str) -> str:
    """A condition and an effect as they stand beside an arrow; empty: there is neither."""
    return " ".join(filter(None, (condition and f"[{condition}]", effect and f"/ {effect}")))


def line_of(event: str, way: str, target: str) -> str:
    """A way in one line: ``order.paid [is domestic] → shipping``."""
    return " ".join(filter(None, (event, way, "→", target)))


def targets_of(target: Target) -> tuple[Answer, ...]:
    """Where something may lead that a table says of an event."""
    return target.targets if isinstance(target, Choice) else (target,)


def edges_of(target: Target) -> tuple[Edge, ...]:
    """The ways of something that a table says of an event."""
    return target.edges if isinstance(target, Choice) else (Edge(target),)


def edge_problems(edges: Collection[Edge], ignored: object) -> Iterator[Problem]:
    """What is wrong with the ways of one event, as (problem, remedy). ``ignored``: the target of what moves nothing."""
    asked: list[Callable[..., object]] = []
    sure = False
    for edge in edges:
        if sure:
            shown = getattr(edge.target, "name", None) or as_text(str(edge.target))
            yield f"has a way to {shown!r} behind one that always holds", "Put what has no when= last."
            return
        if edge.when is not None and edge.when in asked:
            yield f"asks {_in_words(edge.when)!r} twice", "The first way is taken: leave one of them out."
            return
        yield from _function_problems("when", edge.when, edge.title)
        yield from _function_problems("do", edge.do, edge.title if edge.when is None else "")
        if edge.do is not None and edge.target is ignored:
            yield "does something where nothing moves", "Use STAY, or leave do= out."
        if edge.when is None:
            sure = True
        else:
            asked.append(edge.when)


def _function_problems(word: str, given: object, title: object) -> Iterator[Problem]:
    if given is None:
        return
    if not callable(given) or isinstance(given, type):
        yield f"has {word} = {given!a:.60}", "Give a function of the entity, or of the entity and the passage."
        return
    if inspect.iscoroutinefunction(given) or inspect.iscoroutinefunction(type(given).__call__):
        yield (
            f"has {word} = {_in_words(given)!r}, declared with async def",
            "It is called under a lock: declare it with def.",
        )
    if _required(given) not in (1, 2):
        yield (
            f"has {word} = {_in_words(given)!r}, which takes neither one nor two arguments",
            "Let it take the entity, or the entity and the passage.",
        )
    if not title and getattr(given, "__name__", _NAMELESS) == _NAMELESS:
        yield f"has {word} = a function without a name", "Define it by a name, or give title=."


def raised_in(error: BaseException) -> tuple[str, str] | None:
    """``when`` or ``do``, and the words of the condition or effect that raised an error; None: neither did."""
    return vars(error).get(_RAISED_IN)


def _note(error: Exception, option: str, said: str) -> None:
    """Note what raised an error. If an effect emits, what is innermost has noted it already, and that stays."""
    vars(error).setdefault(_RAISED_IN, (option, said))


def _called(function: Callable[..., object], entity: Any, passage: Passage) -> object:
    return function(entity) if _required(function) == 1 else function(entity, passage)


def _required(function: Callable[..., object]) -> int:
    """How many arguments it must be given; -1: others than by place, or nobody knows."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return -1
    needed = [each for each in parameters if each.default is each.empty and each.kind is not each.VAR_KEYWORD]
    if any(each.kind is each.KEYWORD_ONLY for each in needed):
        return -1
    return len(needed)


def _in_words(function: object) -> str:
    return getattr(function, "__name__", "").strip("_").replace("_", " ")
