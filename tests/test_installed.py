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


def python_blocks() -> list[str]:
    """The Python blocks of the part that says how to add it."""
    part = README.partition("## Add it to your project")[2].partition("## The code in five minutes")[0]
    return re.findall(r"^```python\n(.*?)^```$", part, re.DOTALL | re.MULTILINE)


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


@pytest.fixture
def manage(wheel, tmp_path):
    """A new project with the wheel in it; ``manage("migrate")`` runs one of its commands and gives what it printed."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    project = tmp_path / "shop"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed"), "DJANGO_SETTINGS_MODULE": "shop.settings"}

    def run(*command, start=False):
        words = [sys.executable, "manage.py", *command]
        if start:
            return subprocess.Popen(words, cwd=project, env=environment, stdout=subprocess.DEVNULL)
        done = subprocess.run(
            words, cwd=project, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    project.mkdir()
    subprocess.run([sys.executable, "-m", "django", "startproject", "shop", str(project)], check=True)
    (project / "accounts" / "migrations").mkdir(parents=True)
    (project / "accounts" / "migrations" / "__init__.py").touch()
    (project / "accounts" / "models.py").write_text(MODELS)
    installed_apps, databases, timelines = python_blocks()[:3]
    mail = 'AUTH_USER_MODEL = "accounts.User"\nEMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"\n'
    # The new project's own admin and middleware are about its former user model and apps.
    less = 'ROOT_URLCONF = "shop.bare_urls"\nMIDDLEWARE = []\nTEMPLATES = []\n'
    (project / "shop" / "bare_urls.py").write_text("urlpatterns = []\n")
    with (project / "shop" / "settings.py").open("a") as file:
        file.write(f"{installed_apps}{databases}{mail}{less}")
    (project / "accounts" / "timelines.py").write_text(timelines)
    return run


class TestWheel:
    def test_holds_the_package_alone_with_all_it_needs(self, wheel):
        names = zipfile.ZipFile(wheel).namelist()

        tops = {name.split("/")[0] for name in names}
        assert {top for top in tops if not top.endswith(".dist-info")} == {"timeline"}
        assert "timeline/py.typed" in names
        assert "timeline/migrations/0001_initial.py" in names
        sources = {f"timeline/sql/{file.name}" for file in (ROOT / "timeline" / "sql").glob("*.sql")}
        assert sources <= set(names)


class TestAddItToYourProject:
    def test_lets_a_timeline_run(self, manage, tmp_path):
        manage("makemigrations", "accounts")
        manage("migrate")
        assert "no issues" in manage("check", "--database", "default")
        where = manage("shell", "--verbosity", "0", "-c", "import timeline; print(timeline.__file__)")
        assert where.startswith(str(tmp_path / "installed"))

        key = manage("shell", "--verbosity", "0", "-c", SIGN_UP).strip()
        worker = manage("timeline_worker", start=True)
        try:
            give_up = time.monotonic() + 30
            while "trial.expire" not in (shown := self.completed(manage, key)) and time.monotonic() < give_up:
                time.sleep(0.2)
        finally:
            worker.terminate()
            worker.wait(20)

        assert worker.returncode == 0
        assert shown == ["trial.remind", "trial.expire"]
        assert "trial.check_script_usage" in manage("timeline_explain", "accounts.user", key)

    def completed(self, manage, key):
        lines = manage("timeline_explain", "accounts.user", key).splitlines()
        return [line.split()[3] for line in lines if line.startswith("  ✓")]
