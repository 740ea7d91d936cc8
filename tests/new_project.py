"""
"Add it to your project", followed to the letter: the built wheel, alone, in a new project with a UUID-keyed user model.

The blocks are README's own. What README leaves to the host (the user model, the view that signs people up) is made here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)
README = (ROOT / "README.md").read_text(encoding="utf-8")

MODELS = """
import uuid
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import models

class User(AbstractBaseUser):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    email = models.EmailField(unique=True)
    signed_up_at = models.DateTimeField()
    trial_ends_at = models.DateTimeField()
    payment_configured_at = models.DateTimeField(null=True)
    script_seen_at = models.DateTimeField(null=True)
    is_active = models.BooleanField(default=True)
    USERNAME_FIELD = "email"
"""

SIGN_UP = """
from datetime import timedelta
from django.utils import timezone
from accounts.models import User
from timeline.shortcuts import emit

now = timezone.now()
user = User.objects.create(email="ada@example.com", signed_up_at=now - timedelta(days=30), trial_ends_at=now)
emit("user.created", user)
print(user.pk)
"""


def blocks(language: str) -> list[str]:
    """The blocks of the part that says how to add it."""
    part = README.partition("## Add it to your project")[2].partition("## The code in five minutes")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", part, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The package as it is published."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # A copy, so that nothing is built into the checkout.
    shutil.copytree(ROOT / "timeline", source / "timeline", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--wheel-dir", str(folder), str(source)], check=True, capture_output=True
    )
    return next(folder.glob("*.whl"))


class Project:
    """A new project with the wheel in it."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder / "shop"
        self.installed = folder / "installed"
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(self.installed),
            "DJANGO_SETTINGS_MODULE": "shop.settings",
        }
        self.started: list[subprocess.Popen[bytes]] = []
        zipfile.ZipFile(wheel).extractall(self.installed)
        self.folder.mkdir()
        self._write()

    def manage(self, *command: str) -> str:
        """Run one of its commands; gives what it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start something that does not end by itself: ``manage …`` or ``celery …``."""
        command = [sys.executable, "-m", *words]
        log = (self.folder / f"{len(self.started)}.log").open("wb")
        self.started.append(subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=log, stderr=log))
        log.close()
        return self.started[-1]

    def stop(self) -> list[int]:
        """Stop what was started, and kill what has not ended after half a minute; gives how each ended."""
        for process in self.started:
            process.terminate()
        return [_wait_or_kill(process) for process in self.started]

    def wait_until_completed(self, key: str, *task_keys: str) -> list[str]:
        """Wait until a user's tasks have completed, for half a minute at most; gives all that have."""
        give_up = time.monotonic() + 30
        while not set(task_keys) <= set(shown := self._completed(key)) and time.monotonic() < give_up:
            time.sleep(0.2)
        return shown

    def add(self, file: str, text: str) -> None:
        """Write at the end of one of its files."""
        with (self.folder / file).open("a") as opened:
            opened.write(text)

    def _completed(self, key: str) -> list[str]:
        lines = self.manage("timeline_explain", "accounts.user", key).splitlines()
        return [line.split()[3] for line in lines if line.startswith("  ✓")]

    def _write(self) -> None:
        subprocess.run([sys.executable, "-m", "django", "startproject", "shop", str(self.folder)], check=True)
        (self.folder / "accounts" / "migrations").mkdir(parents=True)
        (self.folder / "accounts" / "migrations" / "__init__.py").touch()
        self.add("accounts/models.py", MODELS)
        installed_apps, databases, timelines = blocks("python")[:3]
        mail = 'AUTH_USER_MODEL = "accounts.User"\nEMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"\n'
        # The new project's own admin and middleware are about its former user model and apps.
        less = 'ROOT_URLCONF = "shop.bare_urls"\nMIDDLEWARE = []\nTEMPLATES = []\n'
        self.add("shop/bare_urls.py", "urlpatterns = []\n")
        self.add("shop/settings.py", f"{installed_apps}{databases}{mail}{less}")
        self.add("accounts/timelines.py", timelines)


def _wait_or_kill(process: subprocess.Popen[bytes]) -> int:
    with suppress(subprocess.TimeoutExpired):
        return process.wait(30)
    process.kill()
    return process.wait()


@pytest.fixture
def new_project(wheel, tmp_path):
    """A new project; what it started is killed at the end."""
    made = Project(tmp_path, wheel)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.wait()
