"""Answers of requests that carry a key of their own: such a request acts once, and is answered alike when it comes again."""

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
    Take a key for a request, in the caller's transaction: the first thing that it does. Who comes with the same key waits for
    that transaction; if it is rolled back, the key is free again.

    Args:
        key: Hash of who asks and of their key, 64 characters.
        fingerprint: Hash of what they ask for, 64 characters.
        using: Database alias of what the request is about.

    Returns:
        None: it is taken; act, and ``keep_answer``. Else what the request was answered before.

    Raises:
        KeyReused: if it was another request.
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
    """Write down what a request was answered, in the transaction that took its key and acted."""
    Answer.objects.using(using).filter(pk=key).update(status=status, headers=dict(headers), body=body)


def forget_answers(*, limit: int = 1000, using: str) -> int:
    """
    Delete answers that are no longer kept, the oldest first.

    Args:
        limit: At most so many, in this call and transaction.
        using: Database alias.

    Returns:
        How many; 0 when nothing is left to delete.
    """
    answers = Answer.objects.using(using)
    with atomic(using=using):
        old = answers.no_longer_kept().order_by("made_at").select_for_update(skip_locked=True)
        keys = list(old.values_list("pk", flat=True)[:limit])
        return answers.filter(Among(keys)).delete()[0] if keys else 0
