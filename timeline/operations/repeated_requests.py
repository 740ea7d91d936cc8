"""Answers to requests with an idempotency key: such a request acts once, and gets the same answer when it comes again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import connections

from timeline.dialects import Among, dialect_of
from timeline.exceptions import KeyReused
from timeline.models import Answer
from timeline.models.upkeep import KEPT
from timeline.store.transactions import atomic


def claim_key(key: str, fingerprint: str, *, using: str) -> Answer | None:
    """
    Take a key, before all else in the transaction; gives the answer of an earlier request, or None: act, then ``keep_answer``.
    Others with the key wait, and a rollback frees it. Both hashes have 64 characters. ``KeyReused``: it was for another
    request.
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
    Delete answers that have been kept long enough, the oldest first, up to ``limit``. Gives how many; 0: nothing is left.
    """
    answers = Answer.objects.using(using)
    with atomic(using=using):
        old = answers.no_longer_kept().order_by("made_at").select_for_update(skip_locked=True)
        keys = list(old.values_list("pk", flat=True)[:limit])
        return answers.filter(Among(keys)).delete()[0] if keys else 0
