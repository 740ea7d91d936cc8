"""How pages name an entity and a task, and where the pages of an entity are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from django.contrib.admin.utils import quote
from django.db import router
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import pgettext

from timeline.exceptions import UnknownTask
from timeline.models import EntityRef, model_of
from timeline.models.entities import Entities, load_entities
from timeline.payloads import clip
from timeline.registry import registry
from timeline.store.changes import MAX_ACTOR

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
    from django.db.models import Model
    from django.http import HttpRequest

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
