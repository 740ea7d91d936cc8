"""Webhooks in the demo: an endpoint, a process that sends, and one that receives."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS

from project.demo.clock import now
from project.demo.outsiders import start
from project.demo.processes import start_process
from timeline.webhooks.opening import open_endpoint

TOPICS = ["task.completed.trial", "task.cancelled.trial", "task.discarded"]


def start_webhooks(stack: ExitStack) -> str:
    """
    Start whoever receives, tell it the secret, and send.

    Returns:
        Where the receiver shows what came.
    """
    file = Path(settings.DATA_DIR) / "webhooks.secret"
    file.unlink(missing_ok=True)
    url = start(stack, "receiver", "--secret", str(file))
    _endpoint, secret = open_endpoint(
        url=f"{url}/hook", topics=TOPICS, description="The demo's own receiver", now=now(), using=DEFAULT_DB_ALIAS
    )
    file.touch(mode=0o600)
    stack.callback(file.unlink, missing_ok=True)
    file.write_text(secret, encoding="utf-8")
    start_process(stack, "webhooks", "manage", "timeline_webhooks")
    return url
