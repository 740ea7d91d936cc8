"""What the page of a hold asks: until when, what then, and why."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, time, timedelta
from typing import Any, Final

from django import forms
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from timeline.admin.forms import ReasonForm, read_moment
from timeline.models import Then
from timeline.timing import told_time

_MORNING: Final = time(9)


class HoldForm(ReasonForm):
    """
    Why something is put on hold, until when, and what becomes of its tasks then.

    ``asked_at`` is when the form was shown: what is chosen means the moment that was told with it, however late it is sent.
    """

    asked_at = forms.CharField(required=False, widget=forms.HiddenInput)
    ends = forms.ChoiceField(label=pgettext_lazy("timeline", "Until"), required=False, widget=forms.RadioSelect)
    until = forms.CharField(
        label=gettext_lazy("Or until another time"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local", "step": 60}),
    )
    then = forms.ChoiceField(label=gettext_lazy("When it ends"), choices=Then.choices, initial=Then.RUN)
    field_order = ("asked_at", "ends", "until", "then", "reason")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._offer(self._shown_at())
        self.fields["reason"].help_text = _(
            "Required, 200 characters at most. It is kept with the hold, and your name."
        )

    def _offer(self, shown_at: datetime) -> None:
        self.moments = {name: (at, text) for name, at, text in _soon(shown_at.astimezone(self.zone))}
        released = ("", _("somebody releases it"))
        choices = [released, *((name, text) for name, (_at, text) in self.moments.items())]
        self.fields["ends"].choices = choices  # type: ignore[attr-defined]
        self.initial.update(asked_at=shown_at.isoformat(), ends="")

    def _shown_at(self) -> datetime:
        """When it was shown, to the minute; now, where nothing sensible was sent."""
        try:
            at = parse_datetime(self.data.get("asked_at", ""))
        except ValueError:
            at = None
        is_sane = at is not None and at.tzinfo is not None and abs(self.now - at) < timedelta(days=1)
        return (at if at is not None and is_sane else self.now).replace(second=0, microsecond=0)

    def clean_until(self) -> datetime | None:
        """None where nothing is said; refuse what is not ahead."""
        return self._ahead(read_moment(text, self.zone)) if (text := self.cleaned_data["until"]) else None

    def clean_ends(self) -> datetime | None:
        """The moment that was chosen; None: until somebody releases it."""
        name = self.cleaned_data["ends"]
        at = self.moments[name][0] if name else None
        if at is not None and at <= self.now:  # It was open for long: what is offered now is ahead.
            self.data = {**dict(self.data.items()), "asked_at": self.now.isoformat()}
            self._offer(self._shown_at())
        return at and self._ahead(at)

    def _ahead(self, until: datetime) -> datetime:
        if until <= self.now:
            raise forms.ValidationError(_("This time has passed. Give one that is ahead, or none."))
        return until

    def clean(self) -> dict[str, Any]:
        """Take one end, under ``until``."""
        given = dict(self.cleaned_data)
        chosen, typed = given.pop("ends", None), given.pop("until", None)
        if chosen and typed:
            self.add_error("until", _("Choose an end, or give a time, and not both."))
        return given | {"until": chosen or typed}


class ReleaseForm(ReasonForm):
    """Why a hold is released: needed for what a brake has stopped."""

    def __init__(self, *args: Any, is_needed: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        reason = self.fields["reason"]
        reason.required = is_needed
        if is_needed:
            reason.label = _("Why it is right that they run")
            reason.help_text = _("Required, 200 characters at most. It is kept with the hold, and your name.")
        else:
            reason.help_text = _("If you like, 200 characters at most. It is kept with the hold, and your name.")


def _soon(now: datetime) -> Iterator[tuple[str, datetime, str]]:
    """Ends that are often meant, on this clock: a name, the moment, and how people are told of it."""
    tomorrow, monday = (_morning(now, days) for days in (1, 7 - now.weekday()))
    hour = now + timedelta(hours=1)
    yield "hour", hour, _("in 1 hour (%(at)s)") % {"at": told_time(hour)}
    yield "tomorrow", tomorrow, _("tomorrow 09:00 (%(at)s)") % {"at": f"{tomorrow:%Y-%m-%d}"}
    if monday != tomorrow:
        yield "monday", monday, _("Monday 09:00 (%(at)s)") % {"at": f"{monday:%Y-%m-%d}"}


def _morning(now: datetime, days: int) -> datetime:
    return datetime.combine(now.date() + timedelta(days=days), _MORNING, tzinfo=now.tzinfo)
