"""Ours with no broker, where handlers take steps."""

from __future__ import annotations

from django.db import connections

from benchmarks.peers import timeline_embedded
from benchmarks.peers.adapter import Setting
from benchmarks.peers.timeline_site import TimelineAdapter

PREPARES = 5  # As psycopg has it unless Django says otherwise.


class Peer(timeline_embedded.Peer):
    """One worker, as an operator starts it."""

    jobs = ("steps", "step_updates", "steps_async")
    settings = (
        *timeline_embedded.Peer.settings[1:],
        Setting("prepare_threshold", PREPARES, "in OPTIONS: the record of a plain step is prepared, as raw's is"),
    )
    tables = (*TimelineAdapter.tables, "timeline_step")
    clear = f"TRUNCATE {', '.join(tables)} CASCADE"
    notes = "An atomic step's writes and its record commit together; a plain one is recorded after it has returned."

    def work(self) -> None:
        connections.close_all()
        connections.databases["default"]["OPTIONS"]["prepare_threshold"] = PREPARES
        super().work()
