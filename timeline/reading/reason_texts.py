"""Recalling: find the package's sentence for the reason of a row. The row has only its text; its log also has the values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Case, JSONField, OuterRef, Q, Subquery, When
from django.db.models.functions import JSONObject

from timeline.hooks import hooks
from timeline.lifecycle import Reason, ReasonCode, RunEnd
from timeline.models import LogEntry, ScheduledTask, TimelineRun
from timeline.reasons import SENTENCES, Sentence
from timeline.registry import registry

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from timeline.models.task import ScheduledTaskQuerySet


Said = Mapping[str, Any]  # As in ``detail``: the name of a sentence, and its values.

_KEPT: Final = "_recalled"
_READ: Final = "read_with_it"


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
    """The same for people: an exit of the timeline has its title."""
    text = retold(row)
    return registry.titled_in(timeline, text) if row.reason_code == ReasonCode.EXIT else text


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
