"""The form of an event that somebody says: the reason, or the fields of what its payload is declared to be."""

from __future__ import annotations

import json
import types
from enum import Enum
from typing import Any, Final, Literal, Union, get_args, get_origin

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from timeline.admin.forms import REASON
from timeline.definition.payload_types import members_of

_EMPTY: Final[tuple[object, ...]] = (None, "")


class SayForm(forms.Form):
    """
    What has to be known for an event.

    Args:
        declared: The type of its payload; None: nobody has declared one, so that a reason is asked for.
    """

    def __init__(self, *args: Any, declared: type | None, **options: Any) -> None:
        super().__init__(*args, **options)
        members = {"reason": (str, True)} if declared is None else members_of(declared)
        self._json = {name for name, (kind, _needed) in members.items() if _plain(kind) is None}
        for name, (kind, needed) in members.items():
            self.fields[name] = _field(name, kind, needed)

    def clean(self) -> dict[str, Any]:
        """Read what is written as JSON."""
        said: dict[str, Any] = super().clean() or {}
        for name in self._json & said.keys():
            try:
                said[name] = json.loads(said[name]) if said[name] else None
            except (ValueError, RecursionError):
                self.add_error(name, _("This is no JSON."))
        return said

    def payload(self) -> dict[str, Any]:
        """As the event takes it: what was left empty is left out."""
        return {name: value for name, value in self.cleaned_data.items() if value not in _EMPTY or value is False}


def _plain(kind: Any) -> Any:
    """The type without ``None``; None: one that no field of a form is for."""
    if get_origin(kind) in (Union, types.UnionType):
        kinds = [each for each in get_args(kind) if each is not types.NoneType]
        return _plain(kinds[0]) if len(kinds) == 1 else None
    known = kind in (str, int, float, bool) or get_origin(kind) is Literal
    return kind if known or (isinstance(kind, type) and issubclass(kind, Enum)) else None


def _field(name: str, kind: Any, needed: bool) -> forms.Field:
    plain, label = _plain(kind), name.replace("_", " ")
    if name == "reason" and plain is str:
        said = pgettext_lazy("timeline", "Reason")
        return forms.CharField(label=said, required=needed, max_length=200, help_text=REASON)
    if plain is bool:
        return forms.BooleanField(label=label, required=False)
    if plain is int:
        return forms.IntegerField(label=label, required=needed)
    if plain is float:
        return forms.FloatField(label=label, required=needed)
    if plain is str:
        return forms.CharField(label=label, required=needed, max_length=1000)
    if plain is None:
        return forms.CharField(
            label=label, required=needed, help_text=gettext_lazy("As JSON."), widget=forms.Textarea(attrs={"rows": 4})
        )
    values = get_args(plain) if get_origin(plain) is Literal else [member.value for member in plain]
    by_text = {str(value): value for value in values}
    choices = [("", "–"), *((text, text) for text in by_text)]
    return forms.TypedChoiceField(
        label=label, required=needed, choices=choices, coerce=lambda text: by_text[text], empty_value=""
    )
