"""A worker outside, which knows nothing of Django: takes a job, says so in a file, and does not come back."""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from pathlib import Path


def ask(address: str, path: str, body: dict) -> dict:
    """Send a request to the server."""
    kind = {"Content-Type": "application/openjobspec+json"}
    request = urllib.request.Request(f"{address}/ojs/v1/{path}", json.dumps(body).encode(), kind)  # noqa: S310 (ours)
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        return json.loads(answer.read())


if __name__ == "__main__":
    address, name, folder, held_for = sys.argv[1:]
    while not (jobs := ask(address, "workers/fetch", {"queues": ["default"], "worker_id": name})["jobs"]):
        time.sleep(0.05)
    (Path(folder) / name).write_text(jobs[0]["id"])
    time.sleep(float(held_for))
    ask(address, "workers/ack", {"job_id": jobs[0]["id"], "worker_id": name, "result": name})
