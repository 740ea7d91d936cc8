"""Blank the data about an entity, and keep the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from timeline.clocks import story_now
from timeline.exceptions import InvalidInput
from timeline.features.maintenance import erase as maintenance_erase
from timeline.features.maintenance.erase import Erased
from timeline.lifecycle import Reason
from timeline.models import EntityRef, ScheduledTask, ref_of
from timeline.payloads import check_flag
from timeline.policy import get_policy
from timeline.shortcuts._named import alias_of

if TYPE_CHECKING:
    from django.db.models import Model


def erase(
    entity: Model | EntityRef,
    *,
    reason: str,
    actor: str = "",
    cancel: bool = False,
    owned: bool = False,
    using: str | None = None,
) -> Erased:
    """
    Blank the data about an entity. See ``timeline.features.maintenance.erase.erase`` for the columns, and for errors.

    Args:
        entity: The saved entity; or its reference, if it does not exist any more.
        reason, actor: Why, and who decided.
        cancel: Whether to cancel open tasks and end open runs first.
        owned: For a user: whether to blank also the entities that timelines declare as the user's own (``owner``).
        using: Database alias.

    Raises:
        InvalidInput: naming ``owned``, if ``entity`` is a reference. Naming ``entity``, if one of the entities has an open task
            or run and ``cancel`` is not set, or if one of its own tasks calls this. Naming ``cancel`` or ``owned``, if it is
            neither True nor False. Nothing is changed then.
    """
    check_flag("cancel", cancel)
    check_flag("owned", owned)
    if isinstance(entity, EntityRef):
        if owned:
            problem = _("what belongs to somebody is found by the saved user.")
            raise InvalidInput("owned", problem, _("Give the user, or erase each by itself."))
        using, refs = using or alias_of(None), [entity]
    else:
        using = using or alias_of(entity)
        refs = [ref_of(entity), *(owned_by(entity, using=using) if owned else ())]
    done, why, refs = Erased(), Reason.operator(reason, actor), list(dict.fromkeys(refs))
    maintenance_erase.refuse_own(refs, using=using)
    if not cancel:
        maintenance_erase.refuse_open(refs, using=using)
    for ref in refs:
        done += maintenance_erase.erase(ref=ref, reason=why, cancel=cancel, now=story_now(using), using=using)
    return done


def owned_by(user: Model, *, using: str) -> list[EntityRef]:
    """The entities that belong to a user and have tasks."""
    tasks = get_policy().concerning(ScheduledTask.objects.using(using), user)
    names = tasks.order_by().values_list("entity_label", "entity_id").distinct()
    return [EntityRef(*name) for name in names]
