"""The warden: sees to it that a handler which does not come back holds up nobody else."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Final

from django.db import connections

from timeline.worker.post import Post

logger = logging.getLogger("timeline")

TICK: Final = 0.2  # Seconds between two looks.

REST: Final = 1.0  # Seconds until the next look at a post after the database failed.


class Warden:
    """
    One thread for all posts of this process, which looks at them a few times a second.

    It begins with the first post, and has a connection only while it has something to write.
    """

    def __init__(self) -> None:
        self._posts: set[Post] = set()
        self._owner = 0

    @contextmanager
    def over(self, post: Post) -> Iterator[None]:
        """Watch over a post within a ``with`` block."""
        if self._owner != os.getpid():  # Threads do not come through a fork, nor do posts concern another process.
            self._posts, self._owner = set(), os.getpid()
            threading.Thread(target=self._watch, name="timeline-warden", daemon=True).start()
        self._posts.add(post)
        try:
            yield
        except BaseException:
            post.abandon()
            raise
        finally:
            post.close()
            if post.is_over(monotonic()):
                self._posts.discard(post)

    def _watch(self) -> None:
        while True:
            sleep(TICK)
            for post in list(self._posts):
                self._see_to(post)
                if post.is_over(monotonic()):
                    self._posts.discard(post)

    def _see_to(self, post: Post) -> None:
        try:
            acted = True
            try:
                acted = post.see_to(monotonic())
            finally:
                if acted:
                    connections[post.using].close()
        except Exception as error:  # noqa: BLE001 (whatever is wrong at one post, the others are watched over)
            logger.warning("What is held up is not given back yet: %s", error)
            post.rest(monotonic() + REST)


warden = Warden()
