"""Explain: the story of a task in plain sentences."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from timeline.conf import get_settings
from timeline.exceptions import UnknownTask
from timeline.features.steps.reading import StepLines, steps_of_task, told_steps
from timeline.features.waits.reading import waits_in_words, who_decides
from timeline.hooks import hooks
from timeline.lifecycle import FINAL, ReasonCode, State
from timeline.models import Event, LogEntry, ScheduledTask
from timeline.reading.in_the_way import told_in_the_way
from timeline.reading.log_parts import LogPart, read_log
from timeline.reading.masks import masked, masked_entry, without_people, without_people_entry
from timeline.reading.outlook import is_repeated, series_after, series_ahead
from timeline.reading.reason_texts import retold, told_reason
from timeline.registry import registry
from timeline.timing import told_time
from timeline.told_times import told_apart

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

    from timeline.timing import When


# Sentences around the text of a reason; with other codes the text stands alone.
_WHY = {
    ReasonCode.EXIT: gettext_lazy("the run ended by the exit “%(text)s”"),
    ReasonCode.GUARD: gettext_lazy("its condition said no (%(text)s)"),
    ReasonCode.UNTIL: gettext_lazy("its series has ended (%(text)s)"),
    ReasonCode.HANDLER: gettext_lazy("its handler decided so: %(text)s"),
    ReasonCode.MOVED: gettext_lazy("it was moved: %(text)s"),
    ReasonCode.SHADOW: gettext_lazy("in shadow: %(text)s"),
}
_SILENT = frozenset({ReasonCode.DONE})  # The state says everything.
_NOT_ENTERED = frozenset(
    {ReasonCode.EXPIRED, ReasonCode.GUARD, ReasonCode.UNTIL}
)  # Only a look before the handler says so.

_REST = {
    State.AVAILABLE: gettext_lazy("It is due and waits for a worker."),
    State.PENDING: gettext_lazy("It is on its way to a worker."),
    State.ACTIVE: gettext_lazy("A worker runs it right now."),
}

# Sentences for a resting task, with its deadline.
_RESTS: Mapping[tuple[str, str], StrPromise] = {
    (State.RETRYABLE, ReasonCode.WAITING): gettext_lazy("It rests until that comes, or until %(at)s."),
    (State.RETRYABLE, ReasonCode.IN_DOUBT): gettext_lazy("It rests until somebody decides, and looks again on %(at)s."),
    (State.RETRYABLE, ReasonCode.DEFINITION): gettext_lazy(
        "It rests until its code fits or somebody decides, and looks again on %(at)s."
    ),
}

# Sentences for log entries of a task that waits for an event, or was given back.
_AT_REST: Mapping[str, StrPromise] = {
    ReasonCode.WAITING: gettext_lazy("Attempt %(number)s rests since %(at)s: %(why)s."),
    ReasonCode.EVENT: gettext_lazy("On %(at)s it was woken: %(why)s."),
    ReasonCode.HOLD: gettext_lazy(
        "Attempt %(number)s was given back on %(at)s, before its handler was entered: %(why)s."
    ),
}

# Sentences for followers, by the kind of their anchor and of the task that they follow.
_FOLLOWS: Mapping[tuple[str, str], StrPromise] = {
    ("end", ""): gettext_lazy("If it completes, %(task)s follows."),
    ("end", "each"): gettext_lazy("When each %(name)s has completed, %(task)s follows."),
    ("end", "series"): gettext_lazy("When the last %(name)s has completed, %(task)s follows."),
    ("ended", ""): gettext_lazy("Once it has ended, %(task)s follows."),
    ("ended", "each"): gettext_lazy("Once each %(name)s has ended, %(task)s follows."),
    ("ended", "series"): gettext_lazy("Once the last %(name)s has ended, %(task)s follows."),
    ("each", ""): gettext_lazy("If it completes, %(task)s follows for each that it fans out."),
}
_HAS_NO_ROW: Mapping[str, StrPromise] = {
    "": gettext_lazy("So %(task)s, which follows when it completes, has no row."),
    "each": gettext_lazy("So %(task)s, which follows when each %(name)s has completed, has no row."),
    "series": gettext_lazy("So %(task)s, which follows when the last %(name)s has completed, has no row."),
}


def explain(
    task: ScheduledTask,
    *,
    now: datetime,
    using: str,
    payload: bool = True,
    people: bool = True,
    steps: StepLines | None = None,
    log: LogPart | None = None,
) -> str:
    """
    Tell the story of a task, one sentence a line: why it exists, when it is or was due, what happened, what comes next.

    ``payload`` tells results and errors, ``people`` tells who decided and their texts. ``steps`` and ``log`` None: they are
    read here. Of a long log, the latest part is told. Times are in UTC, with seconds where two of them are of one minute.
    """
    log = read_log(task, using=using) if log is None else log
    if not payload:
        task, log = masked(task), log._replace(entries=[masked_entry(entry) for entry in log.entries])
    if not people:
        entries = [without_people_entry(entry, task) for entry in log.entries]
        task, log = without_people(task), log._replace(entries=entries)
    if steps is None:
        steps = steps_of_task(task, using=using, results=False)
    done, part = steps, log

    def tell() -> Iterator[str]:
        yield from story_so_far(task, part, steps=done, now=now)
        yield from outlook(task, now=now, using=using, people=people)

    return "\n".join(told_apart(tell))


def story_so_far(task: ScheduledTask, log: LogPart, *, steps: StepLines, now: datetime) -> Iterator[str]:
    """Tell why a task exists, when it is or was due, and what happened; task and log are masked as the reader needs it."""
    yield _origin(task, now)
    for tell in hooks().origins:
        yield from tell(task, now=now)
    yield _schedule(task, log.first_due or task.scheduled_at)
    if log.left_out:
        said = ngettext(
            "%(count)s entry of its log is left out here, an earlier one.",
            "%(count)s entries of its log are left out here, the earlier ones.",
            log.left_out,
        )
        yield said % {"count": number_format(log.left_out, force_grouping=True)}
    yield from life(task, log.entries)
    yield from told_steps(steps, of=task.pk)


def why(task: ScheduledTask) -> str:
    """Say in words why a task is in its state; empty if the state says everything."""
    if not task.reason_code or task.reason_code in _SILENT:
        return ""
    return _with_actor(_in_words(task, task.timeline), task.actor)


def standing(task: ScheduledTask) -> str:
    """Say what is to be known of a task beside its state and its time: why it is so, and for what it waits until when."""
    return "; ".join(filter(None, [why(task), waits_in_words(task)]))


def _in_words(row: ScheduledTask | LogEntry, timeline: str) -> str:
    template, text = (
        _WHY.get(ReasonCode(row.reason_code)),
        told_reason(row, timeline) or str(ReasonCode(row.reason_code).label),
    )
    return str(template) % {"text": text} if template else text


def _with_actor(said: str, actor: str) -> str:
    return _("%(said)s, by %(actor)s") % {"said": said, "actor": actor} if actor else said


def _origin(task: ScheduledTask, now: datetime) -> str:
    what = _("%(task)s for %(entity)s") % {"task": registry.titled(task.full_key), "entity": task.entity_ref}
    if task.revision > 1:
        what = _("%(what)s (revision %(number)s)") % {"what": what, "number": task.revision}
    if task.run is None:
        said = _("%(what)s was scheduled ad hoc on %(at)s") % {"what": what, "at": told_time(task.created_at)}
    else:
        told = {"what": what, "timeline": task.run.timeline, "at": told_time(task.run.started_at)}
        if task.run.started_at > (
            task.finished_at or now
        ):  # As the clock's next run, of which somebody ran a task before.
            said = _("%(what)s belongs to the run of %(timeline)s that counts from %(at)s") % told
        else:
            said = _("%(what)s belongs to the run of %(timeline)s that started on %(at)s") % told
    with suppress(Event.DoesNotExist):  # The event may be missing, as where attempts read their causes.
        if task.cause:
            event = registry.titled_in(task.timeline, task.cause.name)
            said = _("%(said)s with the event %(event)s") % {"said": said, "event": event}
    return f"{said}."


def _schedule(task: ScheduledTask, first: datetime) -> str:
    was = task.state in FINAL or first != task.scheduled_at
    said = (_("It was due on %(at)s") if was else _("It is due on %(at)s")) % {"at": told_time(first)}
    if first == task.planned_at != task.nominal_at:  # By its window, or spread.
        said += _(", moved from %(at)s") % {"at": told_time(task.nominal_at)}
    elif first != task.nominal_at:  # Who decided so, if anybody, is told below.
        would = _("by its schedule it would be due on %(at)s")
        would_have = _("by its schedule it would have been due on %(at)s")
        said += "; " + (would_have if was else would) % {"at": told_time(task.planned_at or task.nominal_at)}
    if rule := _rule(task):
        said += f": {rule}"
    if task.anchor.startswith("field:") and task.anchor_value:
        said += f" ({task.anchor.removeprefix('field:')}: {told_time(task.anchor_value)})"
    return f"{said}."


def _is_defined(task_key: str) -> bool:
    """Whether a worker of ours, or of others, may run it."""
    with suppress(UnknownTask):
        return bool(registry.task(task_key))
    return registry.is_elsewhere(task_key)


def _rule(task: ScheduledTask) -> str:
    try:
        declared = registry.task(task.task_key)[1]
    except UnknownTask:
        if registry.is_elsewhere(task.task_key):
            return _("workers outside fetch it and run it")
        unknown = _("no handler of this key is known any more")
        return ". ".join(filter(None, [unknown, registry.brought_back_by(task.task_key).rstrip(".")]))
    return declared.describe() if task.run_id else ""


def life(task: ScheduledTask, log: Sequence[LogEntry]) -> Iterator[str]:
    """Tell what happened to a task, from the entries of its log, in order. That it became due or was claimed is left out."""
    for place, entry in enumerate(log):
        if entry.from_state == entry.to_state:
            yield from _changed(entry, task.timeline)
        elif entry.to_state == State.ACTIVE and any(
            after.reason_code in _NOT_ENTERED for after in log[place + 1 :][:1]
        ):
            yield _began(task, entry)
        elif entry.to_state in FINAL:
            yield _ending(task, entry)
        elif said := _said_of(task, entry):
            yield said


def _began(task: ScheduledTask, entry: LogEntry) -> str:
    """A sentence on an attempt that ended before its handler."""
    told = {"number": entry.attempt, "at": told_time(entry.at), "worker": task.worker}
    if task.worker and entry.attempt == task.attempt:
        return _("Attempt %(number)s began on %(at)s by %(worker)s, and did not enter its handler.") % told
    return _("Attempt %(number)s began on %(at)s, and did not enter its handler.") % told


def _said_of(task: ScheduledTask, entry: LogEntry) -> str:
    """A sentence on a move that ends nothing; empty for moves that need no words."""
    told = {
        "number": entry.attempt,
        "at": told_time(entry.at),
        "why": _reason(entry, task.timeline),
        "worker": task.worker,
    }
    if entry.to_state == State.ACTIVE:
        if task.worker and entry.attempt == task.attempt:
            return _("Attempt %(number)s started on %(at)s by %(worker)s.") % told
        return _("Attempt %(number)s started on %(at)s.") % told
    if entry.reason_code in _AT_REST:
        return str(_AT_REST[entry.reason_code]) % told
    if entry.to_state == State.RETRYABLE:
        return _("Attempt %(number)s ended on %(at)s without success: %(why)s.") % told
    if entry.reason_code == ReasonCode.OPERATOR:
        return _("On %(at)s it was made due at once: %(why)s.") % told
    return ""


def _changed(entry: LogEntry, timeline: str) -> Iterator[str]:
    if _is_move(entry):
        said = _("On %(at)s it was moved from %(before)s to %(later)s") % {
            "at": told_time(entry.at),
            "before": told_time(datetime.fromisoformat(entry.detail["scheduled_at_before"])),
            "later": told_time(datetime.fromisoformat(entry.detail["scheduled_at"])),
        }
        if why := retold(entry):
            said += f": {why}"
        yield f"{_with_actor(said, entry.actor)}."
    elif "redriven" in entry.detail:
        yield _("On %(at)s it was decided to run it again: %(why)s.") % {
            "at": told_time(entry.at),
            "why": _reason(entry, timeline),
        }
    elif "resend" in entry.detail:
        yield _("On %(at)s its message was sent again.") % {"at": told_time(entry.at)}
    elif "grace" in entry.detail:
        yield _("On %(at)s its lease had run out; its worker was there, and was given a little longer.") % {
            "at": told_time(entry.at)
        }


def _is_move(entry: LogEntry) -> bool:
    return bool(entry.detail.get("scheduled_at"))


def _ending(task: ScheduledTask, entry: LogEntry) -> str:
    told = {"at": told_time(entry.at), "result": _as_json(task.result), "why": _reason(entry, task.timeline)}
    if entry.reason_code == ReasonCode.SHADOW:
        return _("It would have run on %(at)s: its timeline was in shadow, so its handler was not entered.") % told
    if entry.reason_code == ReasonCode.THEN and (error := entry.detail.get("error")):
        message = error["message"].rstrip(".") or _("no message")
        said = f"{error['class']}: {message}"
        return _("It was completed on %(at)s: %(why)s. The error was %(error)s.") % {**told, "error": said}
    if entry.reason_code == ReasonCode.THEN:
        return _("It was completed on %(at)s: %(why)s.") % told
    if entry.to_state == State.COMPLETED:
        if task.result is None:
            return _("It was completed on %(at)s.") % told
        return _("It was completed on %(at)s. Its result: %(result)s.") % told
    if entry.to_state == State.DISCARDED:
        return _("It was discarded on %(at)s: %(why)s.") % told
    return _("It was cancelled on %(at)s: %(why)s.") % told


def _as_json(result: Any) -> str:
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)


def _reason(entry: LogEntry, timeline: str) -> str:
    error = entry.detail.get("error")
    # The words of these codes say everything, in the reader's language.
    if error and entry.reason_code not in (
        ReasonCode.TIMEOUT,
        ReasonCode.THEN,
    ):
        message = error["message"].rstrip(".") or _("no message")  # The sentence itself ends with a full stop.
        return f"{error['class']}: {message}"
    if not entry.reason_code:
        return _with_actor(_("no reason given"), entry.actor)
    return _with_actor(_in_words(entry, timeline), entry.actor)


def outlook(task: ScheduledTask, *, now: datetime, using: str, people: bool = True) -> Iterator[str]:
    """Say what a task waits for, and what comes after it; arguments as for ``explain``."""
    if task.state in FINAL:
        yield from _after_the_end(task, using)
        yield from _told_by_features(task, using)
        return
    if task.state != State.ACTIVE and not _is_defined(task.task_key):
        yield _(
            "It has no definition any more, so that nothing runs it, and nothing cancels it: until the code has %(task)s "
            "again, or somebody applies the plan, with manage.py timeline_apply %(timeline)s."
        ) % {"task": task.task_key, "timeline": task.task_key.partition(".")[0]}
        return
    told = list(told_in_the_way(task, people=people, using=using))
    yield from told
    yield from _state_of(task, now, is_held=bool(told), using=using)
    if registry.in_shadow(task.task_key):
        yield _("Its timeline is in shadow: as long as that is so, its handler is not entered.")
    yield from series_ahead(task, now=now, using=using)
    for follower, when in _followers(task):
        said = _FOLLOWS[when.anchor.partition(":")[0], _one_of(task)]
        yield str(said) % {"task": follower, "name": task.task_name}


def _state_of(task: ScheduledTask, now: datetime, *, is_held: bool, using: str) -> Iterator[str]:
    """Say what a task waits for. A task that is on hold is not late."""
    if asked := who_decides(task):
        yield asked
    elif task.state == State.RETRYABLE and task.reason_code == ReasonCode.WAITING and not task.awaits:
        yield _("It rests until %(at)s.") % {"at": told_time(task.scheduled_at)}
    elif rest := _RESTS.get((task.state, task.reason_code)):
        yield str(rest) % {"at": told_time(task.scheduled_at)}
    elif task.scheduled_at > now:
        yield _("It waits for its time, %(at)s.") % {"at": told_time(task.scheduled_at)}
    elif is_held:
        yield _("It is due, and runs when nothing holds it any more.")
    elif task.state in _REST:
        yield str(_REST[State(task.state)])
        yield from _told_by_features(task, using)
    else:
        yield _("Its time has come; the next poll takes it.")
    is_late = task.state != State.ACTIVE and task.scheduled_at + get_settings().overdue_after < now
    if is_late and not is_held:
        yield from _who_is_missing(task, using)


def _who_is_missing(task: ScheduledTask, using: str) -> Iterator[str]:
    if registry.is_elsewhere(task.task_key):
        yield _("It is overdue: does a worker outside fetch from its queue, %(queue)s?") % {"queue": task.queue}
    elif _could_be_claimed(task, using):
        yield _("It is overdue: is a worker running?")


def _could_be_claimed(task: ScheduledTask, using: str) -> bool:
    """Whether nothing but a worker is missing."""
    return task.state != State.AVAILABLE or all(source.is_free(task, using=using) for source in hooks().sources)


def _told_by_features(task: ScheduledTask, using: str) -> Iterator[str]:
    for tell in hooks().explains:
        yield from tell(task, using=using)


def _after_the_end(task: ScheduledTask, using: str) -> Iterator[str]:
    later = ScheduledTask.objects.using(using).filter(previous=task).order_by("revision").first()
    if later is not None:
        told = {"id": later.pk, "state": State(later.state).label, "at": told_time(later.scheduled_at)}
        yield _("Its next revision, %(id)s, is %(state)s, due on %(at)s.") % told
    elif (followed := series_after(task, using=using)) is not None:
        yield followed
    elif task.state != State.COMPLETED and task.reason_code != ReasonCode.UNTIL:
        for follower, when in _followers(task):
            if not when.takes_any_end:
                yield str(_HAS_NO_ROW[_one_of(task)]) % {"task": follower, "name": task.task_name}


def _one_of(task: ScheduledTask) -> str:
    if not task.is_fanned_out:
        return ""
    return "series" if is_repeated(task) else "each"


def _followers(task: ScheduledTask) -> list[tuple[str, When]]:
    try:
        definition, declared = registry.task(task.task_key)
    except UnknownTask:
        return []
    return [
        (registry.titled(definition.task_key(name)), other.when)
        for name, other in definition.tasks.items()
        if task.run_id and other.when and other.when.predecessor_name == declared.name
    ]
