"""Where bulk actions take part: polls go on with them, and forget those that ended long ago."""

from __future__ import annotations

from operator import attrgetter

from timeline.clocks import story_now
from timeline.features.bulk_actions.poll import act_in_bulk, forget_bulk_actions
from timeline.hooks import Hooks, Poll
from timeline.models import BulkAction


def _go_on(poll: Poll) -> int:
    return act_in_bulk(now=poll.clock(), using=poll.using)


def _forget(using: str) -> None:
    forget_bulk_actions(now=story_now(using), using=using)


def _rename(old: str, new: str, *, using: str) -> None:
    """Change the filters of open bulk actions that select tasks by this kind of entity."""
    rows = BulkAction.objects.using(using).open().filter(filters__kind=old).order_by("pk")
    for pk, filters in list(rows.values_list("pk", "filters")):
        rows.filter(pk=pk).update(filters=filters | {"kind": new})


HOOKS = Hooks(long_work=((attrgetter("signed.some_in_bulk"), _go_on),), maintains=(_forget,), relabels=(_rename,))
