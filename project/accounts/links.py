"""Links that open an account: signed, so that nobody can guess another's. Each kind of link has a signature of its own."""

from __future__ import annotations

from django.core import signing
from django.http import Http404
from django.shortcuts import get_object_or_404

from project.accounts.models import User

_TIMELINE = signing.Signer(salt="my timeline")
_SCRIPT = signing.Signer(salt="chat script")


def timeline_token(user: User) -> str:
    """What opens “my timeline”, with all a customer can do there. Only the customer gets it."""
    return _TIMELINE.sign(str(user.pk))


def script_token(user: User) -> str:
    """What the chat script on the customer's website calls with. Everybody can read it there; it opens nothing."""
    return _SCRIPT.sign(str(user.pk))


def user_of_timeline(token: str) -> User:
    """
    Find the account a link opens.

    Raises:
        Http404: for a link that is not ours, as for an account that is not there.
    """
    return _user(_TIMELINE, token)


def user_of_script(token: str) -> User:
    """Find the account whose script calls; errors as above."""
    return _user(_SCRIPT, token)


def _user(signer: signing.Signer, token: str) -> User:
    try:
        pk = signer.unsign(token)
    except signing.BadSignature:
        raise Http404("There is no such page.") from None
    return get_object_or_404(User, pk=pk)
