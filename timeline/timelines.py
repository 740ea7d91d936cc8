"""``Alerts``: the package's own timeline, which tells people of what failed for good; ``link_to`` a page of the admin."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.mail import EmailMessage
from django.db import router
from django.urls import NoReverseMatch, get_script_prefix, reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from timeline.conf import get_settings
from timeline.definition import Retry, Timeline, task
from timeline.likeness import constant
from timeline.models import ScheduledTask
from timeline.payloads import clip
from timeline.reading.dead_letters import dead_letters
from timeline.signals import Alert, alerted
from timeline.timing import in_utc

MAX_MESSAGE = 300
_PAGES: Final = {
    "missed": "timeline_scheduledtask_health",
    "unpolled": "timeline_scheduledtask_health",
    "disabled": "timeline_webhooks_endpoint_changelist",
    "unsent": "timeline_scheduledtask_health",
    "parked": "timeline_scheduledtask_holds",
}


def link_to(name: str, *args: object, using: str, **asked: str) -> str:
    """The absolute address of an admin page, below ``BASE_URL``; empty: none is set, or this database has no such page."""
    base = get_settings().BASE_URL.rstrip("/")
    if not base or using != router.db_for_write(ScheduledTask):
        return ""
    try:
        path = reverse(f"admin:{name}", args=args)
    except (NoReverseMatch, ImproperlyConfigured, ImportError, AttributeError):  # Also: a worker without a URLconf.
        return ""
    return f"{base}/{path.removeprefix(get_script_prefix())}{f'?{urlencode(asked)}' if asked else ''}"


class Alerts(Timeline):
    """Each alert is a task of its own, written in the transaction that it tells of, so that no crash loses it."""

    name = "alerts"

    @task(atomic=False, retry=Retry(max_attempts=40, base=timedelta(seconds=15), cap=timedelta(hours=1)))
    def tell(self) -> dict[str, Any]:
        """Write to the addresses, and tell who listens. A mail server that is down is tried again for a day and a half."""
        using = self.task._state.db or "default"
        alert = _alert(self.task, using)
        if self.task.attempt == 1 or self.lost:
            alerted.send_robust(sender=None, using=using, alert=alert)
        addresses = get_settings().alert_addresses
        if addresses:
            subject = settings.EMAIL_SUBJECT_PREFIX + _in_one_line(_subject(alert))
            EmailMessage(subject, _body(alert, self.task.payload, using), settings.SERVER_EMAIL, addresses).send()
        return {"addresses": len(addresses)}


def _alert(row: ScheduledTask, using: str) -> Alert:
    """Read what there is to tell by now."""
    told = row.payload
    alert = Alert(
        kind=told["kind"],
        about=told["about"],
        group="",
        count=1,
        first_at=row.created_at,
        last_at=row.created_at,
        message=told.get("text", ""),
    )
    if alert.kind == "discarded":
        return _of_group(alert, told, using)
    return replace(alert, url=link_to(_PAGES[alert.kind], using=using) if alert.kind in _PAGES else "")


def _of_group(alert: Alert, told: dict[str, Any], using: str) -> Alert:
    """Add what the group is by now; where it was redriven or pruned meanwhile, one task was discarded all the same."""
    tasks, group = ScheduledTask.objects.using(using), told["group"] or told["about"]
    sample = tasks.filter(pk=told["task"]).first()
    message = clip(constant(sample.error or sample.reason), MAX_MESSAGE) if sample else ""
    url = link_to("timeline_scheduledtask_dead", using=using, group=group)
    alert = replace(alert, group=group, message=message, task_id=UUID(told["task"]), url=url)
    for each in dead_letters(tasks.all(), group):
        if each.task_key == alert.about:
            return replace(alert, count=each.count, first_at=each.first_at, last_at=each.last_at)
    return alert


def _subject(alert: Alert) -> str:
    if alert.kind == "discarded":
        said = ngettext(
            "%(about)s: %(count)d task is discarded", "%(about)s: %(count)d tasks are discarded", alert.count
        )
        return said % {"about": alert.about, "count": alert.count}
    if alert.kind == "missed":
        return _("%(about)s: a time was passed over") % {"about": alert.about}
    if alert.kind == "parked":
        return _("%(about)s is on hold: its brake has stopped it") % {"about": alert.about}
    if alert.kind == "disabled":
        return _("Webhooks: nothing is sent to %(about)s any more") % {"about": alert.about}
    if alert.kind == "unsent":
        return _("Webhooks: nobody sends what waits in the database %(about)s") % {"about": alert.about}
    return _("Nobody polls the database %(about)s") % {"about": alert.about}


def _in_one_line(text: str) -> str:
    """Without line breaks, which no mail is sent with: people name endpoints."""
    return " ".join(text.split())


def _body(alert: Alert, told: dict[str, Any], using: str) -> str:
    """What the mail says: no payload, and of an error what it has in common with others."""
    lines = [alert.message, ""]
    if alert.url:
        lines += [_("See: %(url)s") % {"url": alert.url}, ""]
    if alert.kind == "discarded":
        said = {"first": in_utc(alert.first_at), "last": in_utc(alert.last_at), "task": alert.task_id}
        lines += [
            _("The first was discarded at %(first)s, the last at %(last)s. One of them: %(task)s.") % said,
            *filter(None, [link_to("timeline_scheduledtask_change", alert.task_id, using=using)]),
            _("They run again, once the cause is mended, with:"),
            f"    manage.py timeline_dead_letters {alert.group} --redrive REASON",
            "",
            _("Of what fails alike there is one such mail an hour."),
        ]
    if alert.kind == "parked":
        lines += [
            _(
                "Nothing of it runs until somebody releases it. What is due stays as it is; see whether it is meant to run."
            ),
            _("What must not run is cancelled first. Then it is released, with:"),
            f"    manage.py timeline_hold --release {told['hold']} --actor NAME --reason REASON",
        ]
    return "\n".join(lines)
