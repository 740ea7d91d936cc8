"""Ours with no broker, where handlers take steps."""

from __future__ import annotations

from benchmarks.peers import timeline_embedded
from benchmarks.peers.timeline_site import TimelineAdapter


class Peer(timeline_embedded.Peer):
    """One worker, as an operator starts it."""

    jobs = ("steps", "step_updates", "steps_async")
    settings = timeline_embedded.Peer.settings[1:]
    tables = (*TimelineAdapter.tables, "timeline_step")
    clear = f"TRUNCATE {', '.join(tables)} CASCADE"
    notes = "An atomic step's writes and its record commit together; a plain one is recorded after it has returned."
