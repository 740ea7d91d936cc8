"""Settings of the tests: the site's, with the models of the tests beside its own."""

import atexit
import shutil
import tempfile
from pathlib import Path

from project.settings import *  # noqa: F403
from project.settings import DATABASES, INSTALLED_APPS

DEBUG = False
SECRET_KEY = "of the tests only"  # noqa: S105
INSTALLED_APPS = [*INSTALLED_APPS, "tests.testapp"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"

# In a file, so that tests can start workers as processes of their own.
_DATA = Path(tempfile.mkdtemp(prefix="timeline-tests-"))
atexit.register(shutil.rmtree, _DATA, ignore_errors=True)
DATABASES = {
    "default": {**DATABASES["default"], "NAME": _DATA / "unused.sqlite3", "TEST": {"NAME": _DATA / "test.sqlite3"}}
}
