"""What applicants type in."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

HOURS = [(24, _("Any time")), (12, _("In the morning only")), (16, _("Before four in the afternoon"))]


class ApplicationForm(forms.Form):
    """Who wants an appointment, and their account at the portal."""

    name = forms.CharField(label=_("Your name"), max_length=100, widget=forms.TextInput(attrs={"autocomplete": "name"}))
    email = forms.EmailField(
        label=_("E-mail address"), max_length=150, widget=forms.EmailInput(attrs={"autocomplete": "email"})
    )
    password = forms.CharField(
        label=_("Password of your account at the portal"),
        max_length=100,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    latest_hour = forms.TypedChoiceField(label=_("When does it suit you?"), choices=HOURS, coerce=int)


class CodeForm(forms.Form):
    """The code that the portal has sent."""

    code = forms.RegexField(
        r"^[0-9]{4,10}\Z",
        label=_("Code"),
        error_messages={"invalid": _("The code is digits only.")},
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "one-time-code"}),
    )


class PasswordForm(forms.Form):
    """Another password."""

    password = forms.CharField(
        label=_("Your password at the portal"),
        max_length=100,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )


class ChoiceForm(forms.Form):
    """
    One of the appointments that were found.

    Args:
        offers: These, each as ISO 8601 and in words.
    """

    slot = forms.ChoiceField(label=_("Appointment"), widget=forms.RadioSelect)

    def __init__(self, *args: object, offers: list[tuple[str, str]], **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.fields["slot"].choices = offers  # type: ignore[attr-defined]
