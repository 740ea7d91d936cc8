"""
A process that has loaded all that others like it will need, and forks them: that takes a twentieth of what a start takes.

``python -m tests.nursery DOOR KIND``, by ``tests.forking``: loads what its kind needs, then forks for each message that comes
through the socket ``DOOR``. It ends when nobody holds the other end any more.

What is forked reads the settings anew, in an environment of its own. Where they differ in more than a nursery can change, it
becomes a process as people start them.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import select
import socket
import sys
import threading
from ctypes import c_bool
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import RawValue
from typing import Any, Final

import django
from asgiref.local import Local
from django.conf import Settings, settings
from django.core.management import get_commands, load_command_class
from django.db import connections

# What is asked for each time, and kept nowhere.
CHANGEABLE: Final = {"CELERY_BROKER_URL", "DATABASES", "TIMELINE"}
CELERY: Final = (
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.concurrency.prefork",
    "celery.concurrency.thread",
    "celery.worker.worker",
    "django_celery_beat.schedulers",
    "kombu.transport.pyamqp",
    "kombu.transport.redis",
    "project.celery",
    "timeline.tasks",
)
COMMANDS: Final = ("timeline_poll", "timeline_worker")
# What others made of what we need: nothing of it asks for settings, and nothing of ours is among it.
OTHERS: Final = (
    "celery.app.amqp",
    "celery.app.base",
    "celery.app.task",
    "celery.beat",
    "celery.fixups.django",
    "celery.loaders.app",
    "celery.schedules",
    "django.contrib.auth.hashers",
    "django.core.management.base",
    "django.core.serializers.json",
    "django.db.backends.postgresql.base",
    "django.db.migrations.executor",
    "django.db.models",
    "django.forms",
    "django.http",
    "django.template.backends.django",
    "django.test.utils",
    "django.urls",
    "django.views.debug",
    "redis",
)
SIZE: Final = 1 << 18  # Bytes of a message at most: an environment.


def load(kind: str) -> None:
    """
    Load what processes of a kind need.

    Args:
        kind: ``celery``; ``manage``, for what works on our database; or ``others``, for what brings a package of ours itself.
    """
    if kind != "others":
        django.setup()
    for name in {"celery": CELERY, "manage": ("manage",), "others": OTHERS}[kind]:
        import_module(name)
    if kind == "manage":
        for command in COMMANDS:
            load_command_class(get_commands()[command], command)
    gc.collect()
    gc.freeze()


def tend(door: socket.socket) -> list[str]:
    """Fork for each message; returns in what was forked, with its command line. The process ends when the door is closed."""
    living: dict[int, tuple[int, Connection]] = {}  # What tells of its end → its id, and who wants to know.
    while True:
        for ready in select.select([door, *living], [], [])[0]:
            if ready in living:
                pid, told = living.pop(ready)
                told.send(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                told.close()
                os.close(ready)
                continue
            message, handles, _flags, _address = socket.recv_fds(door, SIZE, 2)
            if not message:
                sys.exit()
            log, told = handles[0], Connection(handles[1], readable=False)
            check_alone()
            if not (pid := os.fork()):
                os.setsid()
                door.send(str(os.getpid()).encode())  # It has a group of its own by now, and may be killed.
                door.close()
                told.close()
                for handle, (_pid, other) in living.items():
                    os.close(handle)
                    other.close()
                return begin(log, **json.loads(message))
            os.close(log)
            living[os.pidfd_open(pid)] = pid, told


def check_alone() -> None:
    """Neither threads nor connections come through a fork."""
    assert threading.active_count() == 1, threading.enumerate()
    if settings.configured:
        assert all(connection.connection is None for connection in connections.all(initialized_only=True))


def begin(log: int, command: list[str], environment: dict[str, str]) -> list[str]:
    """Print there, in this environment; gives the command line."""
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.environ.clear()
    os.environ.update(environment)
    if stopping := sys.modules.get("timeline.tasks.shutdown"):
        stopping._stopping = RawValue(c_bool, False)  # Else all that are forked here would share it.
    if settings.configured and not read_settings():
        os.execve(sys.executable, [sys.executable, "-m", *command], environment)  # noqa: S606
    return command


def read_settings() -> bool:
    """Read the settings anew; whether they could be changed to what they are now."""
    before = settings._wrapped
    for name in [name for name in sys.modules if name.startswith(("project.", "tests.")) and name.endswith("settings")]:
        del sys.modules[name]
    now = Settings(os.environ["DJANGO_SETTINGS_MODULE"])
    if {name for name in {*names(before), *names(now)} if value(before, name) != value(now, name)} - CHANGEABLE:
        return False
    settings._wrapped = now
    connections._settings = None
    connections.__dict__.pop("settings", None)
    connections._connections = Local(connections.thread_critical)
    return True


def names(given: Any) -> list[str]:
    return [name for name in dir(given) if name.isupper()]


def value(given: Any, name: str) -> Any:
    return getattr(given, name, None)


if __name__ == "__main__":
    _program, _door, _kind = sys.argv
    load(_kind)
    _module, *_words = tend(socket.socket(fileno=int(_door)))
    sys.argv[1:] = _words
    runpy.run_module(_module, run_name="__main__", alter_sys=True)
