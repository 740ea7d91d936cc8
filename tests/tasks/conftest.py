"""What tests of Celery's side share."""

from __future__ import annotations

import socket
import threading
from datetime import timedelta

import pytest
from celery import current_app

from timeline.tasks.broker import CelerySender


@pytest.fixture
def over(settings):
    """Let the Celery app have this broker."""
    before = current_app.conf.broker_url
    made = []

    def use(url, prefix="timeline"):
        current_app.conf.broker_url = url
        settings.TIMELINE = {"QUEUE_PREFIX": prefix, "POLL_INTERVAL": timedelta(minutes=1)}
        made.append(CelerySender())
        return made[-1]

    yield use
    for sender in made:
        sender.close()
    current_app.conf.broker_url = before


@pytest.fixture
def mute():
    """A port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held = []

        def take():
            while True:
                try:
                    held.append(server.accept())
                except OSError:
                    return

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for connection, _address in held:
            connection.close()


@pytest.fixture
def eager():
    """Let Celery run each task where it is sent."""
    current_app.conf.task_always_eager = current_app.conf.task_eager_propagates = True
    yield
    current_app.conf.task_always_eager = current_app.conf.task_eager_propagates = False
