"""What a worker is called."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys

from django.conf import settings

from timeline.engine.groups import MAX_WORKER
from timeline.worker.process import worker_name


def said_by(code):
    """What another process says."""
    command = [sys.executable, "-c", f"import django; django.setup()\n{code}"]
    return subprocess.run(command, cwd=settings.BASE_DIR, check=True, capture_output=True, text=True).stdout.split()


class TestWorkerName:
    def test_is_host_name_and_process_id_and_something_of_its_own(self):
        assert re.fullmatch(f"{re.escape(socket.gethostname())}:{os.getpid()}:[0-9a-f]{{4}}", worker_name())

    def test_stays_as_long_as_the_process(self):
        assert worker_name() == worker_name()
        assert worker_name("mail") == worker_name("mail")

    def test_may_be_given_and_is_told_apart_all_the_same_also_after_a_fork(self):
        """A machine that is started again gives its worker the same name."""
        says = (
            "import os; from timeline.worker.process import worker_name; mine = worker_name('mail')\n"
            "if os.fork(): os.wait(); print(mine, flush=True)\n"
            "else: print(worker_name('mail'), flush=True); os._exit(0)"
        )

        said = [name for _process in range(2) for name in said_by(says)]

        assert all(name.startswith("mail:") for name in said)
        assert len(set(said)) == 4

    def test_is_no_longer_than_a_row_holds(self):
        name = worker_name("x" * 200)

        assert len(name) == MAX_WORKER
        assert re.fullmatch("x+:[0-9a-f]{4}", name)
