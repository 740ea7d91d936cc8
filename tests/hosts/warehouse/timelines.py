"""Found by the module of the app, about a model named by its label."""

from __future__ import annotations

from tests.hosts.warehouse.models import Crate
from timeline import Timeline, at, created, task


class Storage(Timeline):
    """From the day a crate comes."""

    entity = "depot.Crate"
    starts_on = created()

    @task(at("opens_at"))
    def open(self, crate: Crate) -> str:
        return crate._meta.label
