"""Slots in words: ``every day at 02:00``."""

from __future__ import annotations

from datetime import datetime, tzinfo

from django.utils.dates import WEEKDAYS
from django.utils.formats import date_format
from django.utils.text import get_text_list
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.timing.crons import DaysOfCron
from timeline.timing.slots import DayOfMonth, DaysOfWeek, Slots

LAST_SURE = 28  # Every month has days up to this number.


def in_words(slots: Slots) -> str:
    """Say in words when slots come, in the present language."""
    days, at = slots.days, f"{slots.times[0]:%H:%M}"
    if isinstance(days, DaysOfCron):
        return _("as the cron expression “%(expression)s” says") % {"expression": days.expression}
    if isinstance(days, DaysOfWeek):
        names = get_text_list([str(WEEKDAYS[number]) for number in sorted(days.weekdays)], pgettext("timeline", "and"))
        return _("every %(days)s at %(at)s") % {"days": names, "at": at}
    if isinstance(days, DayOfMonth):
        told = {"number": days.number, "at": at}
        if days.number > LAST_SURE:
            return _("on day %(number)s of every month, or the last it has, at %(at)s") % told
        return _("on day %(number)s of every month at %(at)s") % told
    if slots.any_hour:
        return _("every hour at minute %(minute)s") % {"minute": slots.times[0].minute}
    return _("every day at %(at)s") % {"at": at}


def on_the_wall(at: datetime, zone: tzinfo) -> str:
    """Write a moment for people, as the wall clock of a time zone shows it: ``25 November 2026 02:00``."""
    return date_format(at.astimezone(zone), pgettext("format of a date", "j F Y H:i"))
