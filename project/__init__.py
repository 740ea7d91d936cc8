"""The demonstration site: a chat product with a 30-day trial."""

from project.celery import app as celery_app

__all__ = ["celery_app"]
