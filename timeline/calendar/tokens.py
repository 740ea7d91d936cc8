"""Tokens: what the address of a person's calendar is known by. No row keeps them."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from django.contrib.auth import get_user_model
from django.core.signing import BadSignature, Signer
from django.db import router
from django.utils.http import urlsafe_base64_decode, urlsafe_base64_encode
from django.utils.translation import gettext_lazy as _

from timeline.exceptions import InvalidInput, WrongEntity
from timeline.models import ref_as
from timeline.models.entities import ref_with
from timeline.policy import get_policy

if TYPE_CHECKING:
    from django.db.models import Model

# Letters of a token that is looked at: a key of 100 letters of four bytes, in base64, and a signature.
LONGEST: Final = 700
_SEPARATOR: Final = "."


def calendar_token(user: Model) -> str:
    """
    Make the token of a saved person's calendar. Whoever has it reads the calendar: show it to this person only.

    It is valid until what ``TimelinePolicy.calendar_key`` says of them changes, or until they are not active any more.
    ``InvalidInput`` if the policy has no key for them.
    """
    ref, key = ref_as(user, get_user_model()), get_policy().calendar_key(user)
    if not key:
        problem = _("there is no key of a calendar for %(user)s.")
        remedy = _("Give them a password, usable or not, or say a key in calendar_key of your policy.")
        raise InvalidInput("user", problem, remedy, user=ref.id)
    return _name(ref.id) + _SEPARATOR + _signer().signature(_signed(ref.id, key))


def person_of(token: str) -> Model | None:
    """Find the active person whose calendar a token opens; None: it opens none, whatever the cause."""
    if len(token) > LONGEST or not token.isascii():
        return None
    name, _separator, signature = token.partition(_SEPARATOR)
    person = _named(name)
    key = get_policy().calendar_key(person) if person is not None and getattr(person, "is_active", False) else ""
    # Looked at for nobody, too: how long an answer takes says no more than the answer.
    said = _signed(name if person is None else ref_as(person, get_user_model()).id, key)
    with suppress(BadSignature):
        _signer().unsign(f"{said}{_SEPARATOR}{signature}")  # By a key of the site that was replaced, too.
        return person if key else None
    return None


def _named(name: str) -> Model | None:
    model = get_user_model()
    with suppress(ValueError, WrongEntity):  # Text that is no key, or none that any account can have.
        key = urlsafe_base64_decode(name).decode()
        # No database looks for NUL. And a calendar has one address: base64 has many spellings, and so has a key.
        if "\x00" not in key and _name(ref_id := ref_with(model, key).id) == name:
            accounts = model._default_manager.using(router.db_for_read(model))  # As who logs in is found.
            return accounts.filter(pk=ref_id).first()
    return None


def _name(ref_id: str) -> str:
    return urlsafe_base64_encode(ref_id.encode())


def _signed(ref_id: str, key: str) -> str:
    """What is signed: who it is, and what is changed to revoke it."""
    return json.dumps([ref_id, key])


def _signer() -> Signer:
    return Signer(sep=_SEPARATOR, salt="timeline.calendar")
