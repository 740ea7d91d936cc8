"""What the pages ask before they act."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from timeline.admin.actions import Deed, feature_actions
from timeline.exceptions import DateOutOfRange
from timeline.policy import Action
from timeline.timing import check_time
from timeline.timing.offsets import Offset


def read_moment(text: str, zone: tzinfo) -> datetime:
    """Read a time on the site's clocks; refuse what they never show, or show twice."""
    with timezone.override(zone):
        at: datetime = forms.DateTimeField().clean(text)
    try:
        return check_time("at", at)
    except DateOutOfRange:
        raise forms.ValidationError(_("Give a time between the years 1970 and 9000.")) from None


MOST_DAYS: Final = 36_525
MOST_HOURS: Final = 1_000

REASON: Final = gettext_lazy("Required, 200 characters at most. It is kept in the log, with your name.")


class ReasonForm(forms.Form):
    """Why; kept on the task and in its log."""

    reason = forms.CharField(
        label=pgettext_lazy("timeline", "Reason"),
        max_length=200,
        help_text=REASON,
        widget=forms.TextInput(attrs={"class": "vTextField", "maxlength": 200, "autocomplete": "off"}),
    )

    def __init__(self, *args: Any, now: datetime, zone: tzinfo, **options: Any) -> None:
        self.now = now
        self.zone = zone
        super().__init__(*args, **options)


class MoveForm(ReasonForm):
    """Why, and to when; or how far each from its own time."""

    at = forms.CharField(
        label=pgettext_lazy("timeline", "New time"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local", "step": 60}),
    )
    days = forms.IntegerField(
        label=gettext_lazy("Or later by so many days"),
        required=False,
        min_value=-MOST_DAYS,
        max_value=MOST_DAYS,
        help_text=gettext_lazy("Each counts from its own time, and keeps its hour; -2 is earlier."),
        widget=forms.NumberInput(attrs={"class": "tl-number"}),
    )
    hours = forms.IntegerField(
        label=gettext_lazy("And by so many hours"),
        required=False,
        min_value=-MOST_HOURS,
        max_value=MOST_HOURS,
        help_text=gettext_lazy("What comes to lie in the past is due at once."),
        widget=forms.NumberInput(attrs={"class": "tl-number"}),
    )
    field_order = ("at", "days", "hours", "reason")

    def clean_at(self) -> datetime | None:
        """Refuse what is not ahead; None where nothing is said."""
        if not (text := self.cleaned_data["at"]):
            return None
        at = read_moment(text, self.zone)
        if at <= self.now:
            raise forms.ValidationError(_("This time has passed. Give one that is ahead; for at once, use “Run now”."))
        return at

    def clean(self) -> dict[str, Any]:
        """Take the time, or how far; one of both."""
        given = dict(self.cleaned_data)
        at, by = given.pop("at", None), Offset(days=given.pop("days", 0) or 0, exact=_hours(given.pop("hours", 0)))
        if not self.errors and not at and not by:
            self.add_error("at", _("Give a time, or by how much to move."))
        elif at and by:
            self.add_error("at", _("Give a time, or by how much to move, and not both."))
        return given | ({"by": by} if by else {"at": at})


def _hours(number: int | None) -> timedelta:
    return timedelta(hours=number or 0)


def form_for(deed: Deed) -> type[ReasonForm]:
    """The form that is asked with."""
    theirs = feature_actions().get(deed)
    return (theirs.form if theirs else None) or (MoveForm if deed == Action.MOVE else ReasonForm)


def looked_at(form: ReasonForm) -> ReasonForm:
    """A form of which somebody wants to see first what it would do: the reason may still be missing."""
    form.fields["reason"].required = False
    return form


def answers_of(form: ReasonForm) -> Mapping[str, Any]:
    """What is answered so far; nothing, where nothing was sent, or something of it is wrong."""
    if not form.is_bound or set(form.errors) - {"reason"}:
        return {}
    return form.cleaned_data
