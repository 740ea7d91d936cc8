"""What people answer to a task that asks for approval, one by one, on pages of the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from timeline import shortcuts
from timeline.admin.actions import FeatureAction, Wording
from timeline.admin.forms import ReasonForm
from timeline.features.waits.reading import not_to_decide
from timeline.policy import Action

if TYPE_CHECKING:
    from timeline.admin.subject import Reader
    from timeline.models import ScheduledTask


class ApproveForm(ReasonForm):
    """A yes needs no reason."""

    reason = forms.CharField(
        label=pgettext_lazy("timeline", "Reason"),
        max_length=200,
        required=False,
        help_text=gettext_lazy("200 characters at most. It is kept in the event, with your name."),
        widget=forms.TextInput(attrs={"class": "vTextField", "maxlength": 200, "autocomplete": "off"}),
    )


def _not_to_decide(task: ScheduledTask, reader: Reader) -> str:
    if reader.policy.may_decide(reader.user, task):
        return not_to_decide(task)
    return _("It asks for no approval of yours.")


DECISIONS: Final = (
    FeatureAction(
        name=Action.APPROVE,
        action=Action.APPROVE,
        wording=Wording(
            pgettext_lazy("timeline", "Approve"),
            gettext_lazy("Approve it"),
            gettext_lazy("It is approved. The task goes on."),
            gettext_lazy("The task goes on at once, and is told that you approved it. The first decision stands."),
        ),
        call=shortcuts.approve,
        impossible=_not_to_decide,
        form=ApproveForm,
    ),
    FeatureAction(
        name=Action.REJECT,
        action=Action.REJECT,
        wording=Wording(
            pgettext_lazy("timeline", "Reject"),
            gettext_lazy("Reject it"),
            gettext_lazy("It is rejected. The task goes on."),
            gettext_lazy("The task goes on at once, and is told that you rejected it. The first decision stands."),
        ),
        call=shortcuts.reject,
        impossible=_not_to_decide,
    ),
)
