"""Blank texts about somebody, and keep the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from timeline.clocks import story_now
from timeline.exceptions import InvalidInput
from timeline.lifecycle import Reason
from timeline.models import EntityRef, ScheduledTask, ref_of
from timeline.operations import erasing
from timeline.operations.erasing import Erased
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
    Blank what is kept about an entity. See ``timeline.operations.erasing.erase`` for what that is, and for errors.

    Args:
        entity: Saved, or its reference, where it is not there any more.
        reason, actor: Why, and who decided.
        cancel: Cancel first what is open, and end its runs.
        owned: Of a user: also what timelines declare as theirs (``owner``).
        using: Database alias.

    Raises:
        InvalidInput: naming ``owned``, if it is a reference; or ``entity``, if something is open of any of them, and it is not
            said to cancel it. Nothing is changed then.
    """
    if isinstance(entity, EntityRef):
        if owned:
            problem = _("what belongs to somebody is found by the saved user.")
            raise InvalidInput("owned", problem, _("Give the user, or erase each by itself."))
        using, refs = using or alias_of(None), [entity]
    else:
        using = using or alias_of(entity)
        refs = [ref_of(entity), *(owned_by(entity, using=using) if owned else ())]
    done, why, refs = Erased(), Reason.operator(reason, actor), list(dict.fromkeys(refs))
    if not cancel:
        erasing.refuse_open(refs, using=using)
    for ref in refs:
        done += erasing.erase(ref=ref, reason=why, cancel=cancel, now=story_now(using), using=using)
    return done


def owned_by(user: Model, *, using: str) -> list[EntityRef]:
    """What belongs to a user and has tasks."""
    tasks = get_policy().concerning(ScheduledTask.objects.using(using), user)
    names = tasks.order_by().values_list("entity_label", "entity_id").distinct()
    return [EntityRef(*name) for name in names]
