"""How pages name things in words: an entity, a task, a state, a reason; and where the pages of an entity are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode

from django.contrib.admin.utils import quote
from django.db import router
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, pgettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from timeline.exceptions import UnknownTask
from timeline.lifecycle import ReasonCode, State
from timeline.models import EntityRef, model_of
from timeline.models.entities import Entities, load_entities
from timeline.payloads import clip
from timeline.reading.dead_letters import FAILURES
from timeline.registry import registry
from timeline.store.changes import MAX_ACTOR

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
    from django.db.models import Model
    from django.http import HttpRequest
    from django_stubs_ext import StrPromise

    from timeline.models import ScheduledTask
    from timeline.policy import User

LONG = 20  # Letters of a task key that has room on one line wherever it stands.
KINDS = 4  # Names are looked up for so many kinds of entities on a page, one query each; the rest go by label and id.


def actor_of(user: User) -> str:
    """Name who decides, as rows hold it: a name may be longer where it is an address."""
    return clip(user.get_username(), MAX_ACTOR)  # type: ignore[union-attr]


class Named(NamedTuple):
    """An entity, for people: what it calls itself, else kind and id; its kind with its id; the address of its page."""

    name: str
    kind: str
    where: str


def named(ref: EntityRef, entity: Model | None, site: str) -> Named:
    """Name one entity; None: it is not there any more, or was not looked up."""
    where = f"{reverse(f'{site}:timeline_scheduledtask_entity')}?{urlencode({'label': ref.label, 'id': ref.id})}"
    if not ref.label:
        return Named(pgettext("timeline", "The system"), "", where)
    model = model_of(ref.label)
    kind = f"{model._meta.verbose_name if model else ref.label} {ref.id}"
    return Named((str(entity) if entity is not None else "") or kind, kind, where)


def own_page_of(entity: Model | None, admin: ModelAdmin[Any], request: HttpRequest, *, using: str) -> str:
    """Address of an entity's page in its own admin; empty: it has none on this site, or who asks may not open it."""
    own = None if entity is None else admin.admin_site._registry.get(type(entity))
    if entity is None or own is None or router.db_for_write(type(entity)) != using:
        return ""
    if not own.has_view_or_change_permission(request, entity):
        return ""
    name = f"{admin.admin_site.name}:{entity._meta.app_label}_{entity._meta.model_name}_change"
    with suppress(NoReverseMatch):  # Of an admin that has pages of its own, as ours.
        return reverse(name, args=[quote(str(entity.pk))])
    return ""


def names_of(refs: Iterable[EntityRef], *, using: str, site: str) -> dict[EntityRef, Named]:
    """Name entities: one query for each of the most frequent kinds."""
    refs = list(refs)
    entities = load_to_name(refs, using=using)
    return {ref: named(ref, entities.get(ref), site) for ref in refs}


def load_to_name(refs: Iterable[EntityRef], *, using: str) -> Entities:
    """Read entities that are to be named: one query for each of the most frequent kinds."""
    refs = list(refs)
    frequent = {label for label, _count in Counter(ref.label for ref in refs).most_common(KINDS)}
    return load_entities((ref for ref in refs if ref.label in frequent), using=using)


class Called(NamedTuple):
    """A task, for people. Title and ``doc`` may be empty, a long key may break into lines; ``words`` are title and key."""

    title: str
    key: str
    doc: str
    words: str


def called(task_key: str) -> Called:
    """Name a task by its key, which may say at its end which of many it is."""
    title, doc = registry.told(task_key)
    return Called(title, breakable(task_key), doc, registry.titled(task_key))


def why_in_words(task_key: str, why: str) -> str:
    """Why a task is foreseen, with the title of what it follows: *2 days after “End the trial” completes*."""
    with suppress(UnknownTask):
        definition, declared = registry.task(task_key)
        before = declared.when.predecessor_name if declared.when is not None else ""
        if before in definition.tasks and (title := definition.tasks[before].title):
            return re.sub(rf"(?<![\w.]){re.escape(before)}(?!\w)", lambda _found: f"“{title}”", why)
    return why


def breakable(task_key: str) -> str:
    """Write the key of a task. A long one may be broken into lines after a point, an underscore or a #, and keeps its text."""
    if len(task_key) <= LONG:
        return task_key
    return format_html_join(SafeString("<wbr>"), "{}", ((part,) for part in re.split(r"(?<=[._#])", task_key)))


FAILED_FOR_GOOD: Final = pgettext_lazy("timeline", "failed for good")
WILL_TRY_AGAIN: Final = pgettext_lazy("timeline", "will try again")

REASONS: Final[dict[ReasonCode, StrPromise]] = {
    ReasonCode.ERROR: _("an error"),
    ReasonCode.TIMEOUT: _("it took too long"),
    ReasonCode.WORKER_LOST: _("its worker was lost"),
    ReasonCode.IN_DOUBT: _("a step is in doubt"),
    ReasonCode.DEFINITION: _("its code changed"),
    ReasonCode.OPERATOR: _("somebody decided so"),
    ReasonCode.HANDLER: _("its handler decided so"),
    ReasonCode.GUARD: _("its condition said no"),
    ReasonCode.EXIT: _("an exit ended its run"),
    ReasonCode.RUN_ENDED: _("nothing else was left of its run"),
    ReasonCode.STATE: _("its machine left the state"),
    ReasonCode.THEN: _("it moved its machine"),
    ReasonCode.PREDECESSOR: _("what it follows did not complete"),
    ReasonCode.SUPERSEDED: _("it is planned otherwise now"),
    ReasonCode.MOVED: _("it was moved"),
    ReasonCode.EXPIRED: _("it was too late"),
    ReasonCode.ENTITY_GONE: _("what it is about is gone"),
    ReasonCode.UNTIL: _("its series has ended"),
    ReasonCode.OVERLAP: _("the run before was still open"),
    ReasonCode.WAITING: _("it waits for an event, or sleeps"),
    ReasonCode.EVENT: _("an event woke it"),
    ReasonCode.HOLD: _("it was on hold"),
    ReasonCode.RETRY_AFTER: _("it asked to be tried later"),
    ReasonCode.RELEASED: _("its worker stopped before it began"),
    ReasonCode.SHADOW: _("its timeline is in shadow"),
    ReasonCode.DONE: _("it was done"),
}


def state_of(task: ScheduledTask) -> str:
    """The state of a task, in words."""
    if task.state == State.DISCARDED:
        return str(FAILED_FOR_GOOD)
    if task.state == State.COMPLETED and (failed := task.failures + task.lost):
        if failed == 1:
            return gettext("completed at the second try")
        return gettext("completed at try %(number)s") % {"number": failed + 1}
    if task.state == State.RETRYABLE:
        return str(WILL_TRY_AGAIN if task.reason_code in FAILURES else pgettext_lazy("timeline", "rests"))
    return str(State(task.state).label)


def state_titles() -> dict[str, str]:
    """States as the filter offers them: where the words differ, with the state's own name."""
    said = {
        State.RETRYABLE: pgettext_lazy("timeline", "will try again, or rests"),
        State.DISCARDED: FAILED_FOR_GOOD,
    }
    return {state.value: f"{said[state]} ({state.value})" if state in said else str(state.label) for state in State}
