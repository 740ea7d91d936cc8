"""Recalling: find the package's sentence for the reason of a row. The row has only its text; its log also has the values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.apps import apps
from django.core.exceptions import FieldDoesNotExist
from django.db import DEFAULT_DB_ALIAS
from django.db.models import Case, JSONField, OuterRef, Q, Subquery, When
from django.db.models.functions import JSONObject

from timeline.hooks import hooks
from timeline.lifecycle import Reason, ReasonCode, RunEnd
from timeline.models import LogEntry, ScheduledTask, TimelineRun
from timeline.reading.guard_words import refused_in_words
from timeline.reasons import SENTENCES, Sentence
from timeline.registry import registry

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from timeline.definition import Definition
    from timeline.models.task import ScheduledTaskQuerySet


Said = Mapping[str, Any]  # As in ``detail``: the name of a sentence, and its values.

_KEPT: Final = "_recalled"
_READ: Final = "read_with_it"
_NAMED: Final = frozenset({"event", "events", "states", "task"})  # Gaps of sentences that have names in code.
_NAME: Final = re.compile(r"[\w.:#-]*\w")
_REFUSALS: Final = frozenset({ReasonCode.GUARD, ReasonCode.UNTIL})


class _Sentences(NamedTuple):
    """Sentences by their names; those without values by code and text; and the codes of those with values."""

    named: Mapping[str, Sentence]
    whole: Mapping[tuple[str, str], Sentence]
    codes: Set[str]


def _sentences() -> _Sentences:
    """Those of the core, and of each feature."""
    return _sorted(hooks().sentences)


@lru_cache(maxsize=4)
def _sorted(of_features: Iterable[Sentence]) -> _Sentences:
    named = {**SENTENCES, **{known.name: known for known in of_features}}
    return _Sentences(
        named,
        whole={(known.code.value, known.english): known for known in named.values() if not known.gaps},
        codes={known.code for known in named.values() if known.gaps},
    )


class _Recalled(NamedTuple):
    code: str
    text: str
    said: Said | None


def recall(tasks: Iterable[ScheduledTask], *, using: str) -> None:
    """Read from logs, for tasks that will be shown, the sentences; one query for all, none if their texts are enough."""
    asked = [task for task in tasks if _is_in_question(task)]
    if asked:
        keep_told(asked, list(told_of(asked, using=using)))


def told_of(tasks: Iterable[ScheduledTask], *, using: str) -> QuerySet[Any]:
    """The query of ``recall``. A caller may execute it with other queries, and give its rows to ``keep_told``."""
    asked = [task.pk for task in tasks if _is_in_question(task)]
    reasoned = LogEntry.objects.using(using).filter(task=OuterRef("pk")).exclude(reason_code="").order_by("-seq")
    rows = ScheduledTask.objects.using(using).filter(pk__in=asked).annotate(last=Subquery(reasoned.values("pk")[:1]))
    entries = LogEntry.objects.using(using).filter(pk__in=rows.order_by().values("last"))
    return entries.values_list("task", "reason_code", "reason", "detail__said")


def keep_told(tasks: Iterable[ScheduledTask], rows: Iterable[Sequence[Any]]) -> None:
    """Keep the rows of ``told_of`` on these tasks, so that there is no further query for them."""
    found = {task_id: told for task_id, *told in rows}
    for task in tasks:
        if _is_in_question(task):
            code, text, said = found.get(task.pk, ("", "", None))
            is_its_own = (code, text) == (task.reason_code, task.reason)
            task.__dict__[_KEPT] = _Recalled(task.reason_code, task.reason, said if is_its_own else None)


def with_said(tasks: ScheduledTaskQuerySet) -> ScheduledTaskQuerySet:
    """Read the sentences in the logs together with the tasks, for tasks whose texts are not enough. See ``keep_said``."""
    reasoned = LogEntry.objects.using(tasks.db).filter(task=OuterRef("pk")).exclude(reason_code="").order_by("-seq")
    told = reasoned.values(told=JSONObject(code="reason_code", text="reason", said="detail__said"))
    asked = When(Q(reason_code__in=sorted(_sentences().codes), actor="") & ~Q(reason=""), then=Subquery(told[:1]))
    return tasks.annotate(**{_READ: Case(asked, default=None, output_field=JSONField())})


def keep_said(tasks: Iterable[ScheduledTask]) -> None:
    """Keep the sentences that ``with_said`` has read with these tasks, so that there is no further query for them."""
    for task in tasks:
        told = task.__dict__.pop(_READ, None)
        if _is_in_question(task):
            told = told or {"code": "", "text": "", "said": None}
            said = json.loads(told["said"]) if isinstance(told["said"], str) else told["said"]
            is_its_own = (told["code"], told["text"]) == (task.reason_code, task.reason)
            task.__dict__[_KEPT] = _Recalled(task.reason_code, task.reason, said if is_its_own else None)


def said_of(row: ScheduledTask | LogEntry) -> Said | None:
    """The stored sentence of a reason; None: there is none. One query for a task that was not recalled."""
    if isinstance(row, LogEntry):
        return row.detail.get("said") or None
    if _is_in_question(row):
        recall([row], using=row._state.db or DEFAULT_DB_ALIAS)
    kept = _kept(row)
    return kept and kept.said


def _is_in_question(task: ScheduledTask) -> bool:
    """Whether its log may have more than its text: no person wrote the text, and its code has sentences with values."""
    is_of_a_kind = task.reason_code in _sentences().codes and bool(task.reason) and not task.actor
    return is_of_a_kind and not task._state.adding and _kept(task) is None


def _kept(task: ScheduledTask) -> _Recalled | None:
    kept: _Recalled | None = task.__dict__.get(_KEPT)
    return kept if kept and (kept.code, kept.text) == (task.reason_code, task.reason) else None


def retold(row: ScheduledTask | LogEntry) -> str:
    """The text of a reason, in the present language where the package wrote it. For several rows, call ``recall`` first."""
    found = _sentence(row)
    return row.reason if found is None else found[0].told(found[1])


def told_reason(row: ScheduledTask | LogEntry, timeline: str) -> str:
    """The same for people: exits, guards, and what the package's sentences name, have their titles."""
    definition = next((known for known in registry if known.name == timeline), None)
    if (found := _sentence(row)) is not None and definition is not None:
        sentence, said = found
        return sentence.told({**said, **_with_titles(definition, said)})
    text = retold(row)
    if row.reason_code in _REFUSALS:
        return refused_in_words(definition, text)
    return registry.titled_in(timeline, text) if row.reason_code == ReasonCode.EXIT else text


def _with_titles(definition: Definition, said: Mapping[str, Any]) -> dict[str, str]:
    """The values of a sentence that are names in code, as people say them; what has no title stays as it is."""

    def called(name: str) -> str:
        declared = definition.tasks.get(name)
        title = definition.title_of(name) or (declared.title if declared is not None else "")
        return f"“{title}”" if title else name

    told = {gap: _NAME.sub(lambda found: called(found[0]), str(said[gap])) for gap in _NAMED & said.keys()}
    if "anchor" in said:
        told["anchor"] = _field_in_words(definition, str(said["anchor"]))
    if "code" in said and said["code"] in ReasonCode:
        told["code"] = str(ReasonCode(said["code"]).label)
    return told


def _field_in_words(definition: Definition, name: str) -> str:
    """What Django calls a field of the entity; else its name."""
    with suppress(LookupError, ValueError, FieldDoesNotExist):
        return str(getattr(apps.get_model(definition.label)._meta.get_field(name), "verbose_name", name))
    return name


def title_of_reason(task: ScheduledTask) -> str:
    """What people call the exit, or the guard that refused, that is the reason of a task; empty: it has no such words."""
    if task.reason_code == ReasonCode.EXIT:
        return registry.title_in(task.timeline, task.reason)
    words = told_reason(task, task.timeline) if task.reason_code in _REFUSALS else ""
    return "" if words == retold(task) else words


def retold_reason(reason: Reason) -> str:
    """Tell the text of a reason that is in no row yet, as ``retold`` does."""
    if reason.said:
        return _sentences().named[reason.said["sentence"]].told(reason.said)
    known = _sentences().whole.get((reason.code.value, reason.text))
    return reason.text if known is None else known.told({})


def is_of_the_system(row: ScheduledTask | LogEntry) -> bool:
    """Whether the package wrote the text of a reason, and nobody else."""
    return _sentence(row) is not None


def _sentence(row: ScheduledTask | LogEntry) -> tuple[Sentence, Mapping[str, Any]] | None:
    code, text = row.reason_code, row.reason
    if not code or not text:
        return None
    if whole := _sentences().whole.get((code, text)):
        return whole, {}
    said = said_of(row)
    if said is None:
        return None
    known = _sentences().named.get(said.get("sentence", ""))
    return (known, said) if known and known.code == code and known.gaps <= said.keys() else None


def retold_end(run: TimelineRun) -> str:
    """Tell in the present language how a run ended; empty: it has not ended. An exit has its name and, if any, its title."""
    known = _sentences().whole.get((ReasonCode.EXIT.value, run.end_reason))
    by_name = run.end_code in (RunEnd.EXIT, RunEnd.LEFT)
    if known is None or by_name:
        return registry.titled_in(run.timeline, run.end_reason)
    return known.told({})
