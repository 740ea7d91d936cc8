"""The quick comparison, at a size that shows that it works and nothing else."""

from __future__ import annotations

import json

from benchmarks.comparing.plan import OURS

# Nothing is cut off at its window, so that all jobs are counted.
SMALL = [
    "--rows",
    "60",
    "--bulk",
    "120",
    "--jobs",
    "nothing=3000,entity=500,many=3000",
    "--workers",
    "1",
    "--seconds",
    "2",
    "--sizes",
    "2000",
    "--window",
    "100",
    "--shortest",
    "0.05",  # It is not looked at how fast they are.
]
MEASURES = {
    "schedule_one",
    "schedule_many",
    "bytes.waiting",
    "bytes.done",
    "drain.nothing.1",
    "drain.entity.1",
    "drain.many.1",
    "latency.p50",
    "latency.p99",
    "poll.2000",
    "cancel.2000",
}


class TestComparing:
    def test_measures_ours_and_the_same_rows_by_hand(self, benchmark, tmp_path):
        peers = [name for name in OURS if name != "timeline_celery"]  # Its processes take a minute to come and go.
        output = tmp_path / "figures.json"

        done = benchmark("--quick", *SMALL, "--only", ",".join(peers), "--output", str(output))

        assert done.returncode == 0, done.stderr
        found = json.loads(output.read_text(encoding="utf-8"))
        assert (list(found["peers"]), found["left_out"]) == (peers, {})
        for peer in found["peers"].values():
            assert set(peer["values"]) >= MEASURES
            assert all(value > 0 for values in peer["values"].values() for value in values)
            assert len(peer["counted"]) == 2
            assert all(drain["completed"] == drain["counted"] == drain["jobs"] for drain in peer["counted"])

    def test_goes_on_without_a_broker_and_says_so(self, benchmark, tmp_path):
        output = tmp_path / "figures.json"

        done = benchmark("--only", "timeline_celery", "--broker", "redis://127.0.0.1:9/0", "--output", str(output))

        assert "timeline_celery IS LEFT OUT" in done.stderr
        assert "Redis" in json.loads(output.read_text(encoding="utf-8"))["left_out"]["timeline_celery"]
