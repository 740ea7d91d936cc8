"""
A server of the Open Job Specification that dies when it is asked to: ``python -m tests.ojs.mortal PORT``. Each request may name
in ``X-Die-At`` the point at which its process is killed: points are before each statement, and before and after each commit.
Another takes its place at once, and has what waits at the same port.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from itertools import count
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import django

django.setup()

from django.conf import settings  # noqa: E402 (Django is set up first)
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import connection  # noqa: E402


class Quiet(WSGIRequestHandler):
    """Prints nothing."""

    def log_message(self, *_given: Any) -> None:
        """Print nothing."""


class Mortal:
    """The application, which counts what each request does in the database."""

    def __init__(self) -> None:
        self._application = get_wsgi_application()
        self._commit = connection._commit
        self._left = 0
        connection._commit = self._commit_between
        connection.execute_wrappers.append(self._execute)

    def __call__(self, environ: Any, start_response: Any) -> Any:
        self._left = int(environ.get("HTTP_X_DIE_AT", 0))
        return self._application(environ, start_response)

    def _pass(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def _execute(self, execute: Any, *given: Any) -> Any:
        self._pass()
        return execute(*given)

    def _commit_between(self) -> None:
        self._pass()
        self._commit()
        self._pass()


def serve(listening: socket.socket) -> None:
    """Answer requests until it is killed."""
    server = WSGIServer(listening.getsockname(), Quiet, bind_and_activate=False)
    server.socket.close()
    server.socket = listening
    server.server_name, server.server_port = listening.getsockname()
    server.setup_environ()
    server.set_app(Mortal())
    server.serve_forever()


def main(port: str) -> None:
    """Keep one of them."""
    settings.ROOT_URLCONF, settings.TIMELINE_OJS = "tests.ojs.urls", {"ANYBODY": True}
    listening = socket.create_server(("127.0.0.1", int(port)))
    for number in count():
        if not (pid := os.fork()):
            serve(listening)
        print(f"{number}: {os.waitpid(pid, 0)[1]}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
