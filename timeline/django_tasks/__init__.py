"""An app of its own: Django's Tasks framework (``django.tasks``) runs on the rows and workers of this package."""

from timeline.django_tasks.backend import TimelineBackend

__all__ = ["TimelineBackend"]
