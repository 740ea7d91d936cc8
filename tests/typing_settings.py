"""Settings for the type checker: the tests' own, without the app that comes without types."""

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS

INSTALLED_APPS = [name for name in INSTALLED_APPS if name != "django_celery_beat"]
