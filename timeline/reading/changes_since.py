"""How a task has changed since somebody looked at it: who changed what, and when."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from timeline.lifecycle import ReasonCode, State
from timeline.models import LogEntry, ScheduledTask
from timeline.reading.explanation import life, why
from timeline.reading.masks import masked, masked_entry, without_people, without_people_entry
from timeline.timing import told_time


def changes_since(task: ScheduledTask, seq: int, *, using: str, payload: bool = True, people: bool = True) -> list[str]:
    """
    Describe the changes since the task had this ``seq``, in sentences, the first first. Two statements.

    ``payload`` tells results and errors, ``people`` tells who decided and their texts: not everybody may read them.
    """
    log = list(LogEntry.objects.using(using).filter(task=task, seq__gt=seq).order_by("seq"))
    later = ScheduledTask.objects.using(using).filter(previous=task).order_by("revision").first()
    if not payload:
        task, log = masked(task), [masked_entry(entry) for entry in log]
    if not people:
        task, log = without_people(task), [without_people_entry(entry, task) for entry in log]
        later = later and without_people(later)
    told = list(life(task, log))
    if not told and log:
        told = [
            _("Since %(at)s it is %(state)s.") % {"at": told_time(log[-1].at), "state": State(log[-1].to_state).label}
        ]
    return [*told, *_carried_on(later)]


def _carried_on(later: ScheduledTask | None) -> Iterator[str]:
    if later is None:
        return
    told = {"at": told_time(later.created_at), "number": later.revision, "why": why(later)}
    if later.reason_code == ReasonCode.OPERATOR and later.reason:
        yield _("Revision %(number)s carries on for it since %(at)s: %(why)s.") % told
    else:
        yield _("Revision %(number)s carries on for it since %(at)s.") % told
