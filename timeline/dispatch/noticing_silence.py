"""Notice from outside that nobody polls, and other troubles, and have people told, because no worker would tell them."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Final

from django.db import connections
from django.utils.translation import gettext as _

from timeline.clocks import story_now
from timeline.conf import get_settings
from timeline.engine.running import run
from timeline.models import Identity, ScheduledTask
from timeline.models.identity import IdentityQuerySet
from timeline.reading.diagnosing import find_troubles
from timeline.store.alerting import alert_trouble, alert_unpolled, is_anybody_told

SILENT: Final = timedelta(minutes=2)


def is_silent(*, using: str) -> bool:
    """Whether nobody has polled a database of this site for two minutes. One statement, which reads one row."""
    return silent(using=using).exists()


def silent(*, using: str) -> IdentityQuerySet:
    """Ask for the row of a database of this site, if nobody has polled it for two minutes."""
    unpolled = Identity.objects.using(using).unpolled(SILENT).there(SILENT)
    return unpolled.filter(site=get_settings().SITE)


def tell_if_unpolled(*, using: str) -> list[ScheduledTask]:
    """
    Have people told if nobody has polled a database of this site for two minutes: once an hour, however many notice it.

    The alert is written like any other, and run here. If that fails, the next process that notices the silence tries again.

    Args:
        using: Database alias.

    Returns:
        The alert, if it was run here. None in a transaction, because that might be undone after the mail is sent.
    """
    if connections[using].in_atomic_block or not is_anybody_told():
        return []
    if not is_silent(using=using):
        return []
    text = _("Nobody polls it. Start timeline_worker; with Celery, beat and a worker for polls, or timeline_poll.")
    alert = alert_unpolled(text, now=story_now(using), using=using)
    if alert is None or not alert.is_open:
        return []
    return run(task_ids=[alert.pk], clock=partial(story_now, using), using=using, worker="doctor")


def tell_troubles(*, using: str) -> None:
    """
    Have people told about troubles that are not about tasks: once an hour, however many notice them. Workers send the mails.
    """
    if not is_anybody_told():
        return
    now = story_now(using)
    for trouble in find_troubles(now=now, using=using):
        alert_trouble(trouble, now=now, using=using)
