"""Answers to requests with an idempotency key: such a request acts once, and gets the same answer when it comes again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connections

from timeline.dialects import dialect_of
from timeline.exceptions import KeyReused
from timeline.models import Answer
from timeline.models.among import Among
from timeline.models.answer import KEPT
from timeline.store.isolating import atomic


def claim_key(key: str, fingerprint: str, *, using: str) -> Answer | None:
    """
    Take a key for a request, as the first thing in the caller's transaction. Another request with the same key waits for that
    transaction; if it is rolled back, the key is free again.

    Args:
        key: Hash of the caller and of the key that the caller gave, 64 characters.
        fingerprint: Hash of the contents of the request, 64 characters.
        using: Database alias that the request is about.

    Returns:
        None: the key is taken; act, and then ``keep_answer``. Otherwise the answer that the request got before.

    Raises:
        KeyReused: if the key was used for another request.
    """
    dialect = dialect_of(using)
    asked: dict[str, Any] = {"key": key, "fingerprint": fingerprint, "kept": dialect.length_of(KEPT)}
    with connections[using].cursor() as cursor:
        cursor.execute(dialect.sql("claim_answer"), asked)
        if cursor.rowcount:
            return None
    answer = Answer.objects.using(using).get(pk=key)
    if answer.fingerprint != fingerprint:
        raise KeyReused
    return answer


def keep_answer(key: str, *, status: int, headers: Mapping[str, str], body: str, using: str) -> None:
    """Store the answer to a request, in the transaction that took its key and acted."""
    Answer.objects.using(using).filter(pk=key).update(status=status, headers=dict(headers), body=body)


def forget_answers(*, limit: int = 1000, using: str) -> int:
    """
    Delete answers that do not have to be kept any longer, the oldest first.

    Args:
        limit: How many to delete at most, in this call and transaction.
        using: Database alias.

    Returns:
        How many were deleted; 0 if nothing is left to delete.
    """
    answers = Answer.objects.using(using)
    with atomic(using=using):
        old = answers.no_longer_kept().order_by("made_at").select_for_update(skip_locked=True)
        keys = list(old.values_list("pk", flat=True)[:limit])
        return answers.filter(Among(keys)).delete()[0] if keys else 0
