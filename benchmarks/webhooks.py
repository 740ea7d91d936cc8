"""
Webhooks, on PostgreSQL: deliveries a second of one sender to a receiver on this machine, beside a bare client of httpx that
makes the same signed requests, by turns; and how soon after its move a delivery has arrived.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import threading
from datetime import UTC, datetime
from statistics import median, quantiles
from time import perf_counter, sleep
from typing import Any
from uuid import uuid4

from benchmarks.databases import server_version, site

SIDE_BY_SIDE = 16  # Requests under way, of both.
_ANSWER = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            [length] = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            await reader.readexactly(int(length.split(b":")[1]))
            writer.write(_ANSWER)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _receive(told: Any) -> None:
    async def serve() -> None:
        server = await asyncio.start_server(_answer, "127.0.0.1", 0)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


async def _bare(url: str, secret: str, bodies: list[str]) -> float:
    """Seconds that a bare client needs for the same."""
    import httpx
    from standardwebhooks import Webhook

    signer, left = Webhook(secret), iter(bodies)

    async def work(client: httpx.AsyncClient) -> None:
        for body in left:
            at, key = datetime.now(UTC), f"msg_{uuid4().hex}"
            headers = {
                "content-type": "application/json",
                "webhook-id": key,
                "webhook-timestamp": str(int(at.timestamp())),
                "webhook-signature": signer.sign(msg_id=key, timestamp=at, data=body),
            }
            (await client.post(url, content=body, headers=headers)).raise_for_status()

    async with httpx.AsyncClient(timeout=10) as client:
        begun = perf_counter()
        await asyncio.gather(*(work(client) for _each in range(SIDE_BY_SIDE)))
        return perf_counter() - begun


def measure(deliveries: int, rounds: int, moves: int, url: str) -> dict[str, Any]:
    """By turns: ours, and the bare client; then moves one by one beside a sender."""
    from django.db import connection
    from django.utils import timezone

    from timeline.ids import uuid7
    from timeline.webhooks.facts import Fact, as_body, write_deliveries
    from timeline.webhooks.models import Delivery
    from timeline.webhooks.opening import open_endpoint
    from timeline.webhooks.send import WebhookSender

    endpoint, secret = open_endpoint(url=url, topics=["task.completed"], now=timezone.now(), using="default")

    def facts(count: int) -> list[Fact]:
        body = as_body("task.completed", timezone.now(), {"task": "trial.remind", "id": "0" * 32, "text": "x" * 200})
        return [Fact(uuid7(), ["task.completed"], "shop.order", str(key), body) for key in range(count)]

    ours, bare = [], []
    for _round in range(rounds):
        some = facts(deliveries)
        write_deliveries(some, now=timezone.now(), using="default")
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
        begun = perf_counter()
        sent = WebhookSender("default").drain()
        ours.append(sent / (perf_counter() - begun))
        bare.append(deliveries / asyncio.run(_bare(url, secret, [fact.body for fact in some])))
    sender = WebhookSender("default")
    thread = threading.Thread(target=sender.work)
    thread.start()
    sleep(1)
    last = max(Delivery.objects.values_list("pk", flat=True))
    for _move in range(moves):
        write_deliveries(facts(1), now=timezone.now(), using="default")
        sleep(0.05)
    sleep(1)
    sender.stop()
    thread.join()
    pairs = Delivery.objects.filter(pk__gt=last, endpoint=endpoint).values_list("created_at", "ended_at")
    late = [1000 * (ended - created).total_seconds() for created, ended in pairs]
    return {
        "ours_a_second": round(median(ours)),
        "bare_a_second": round(median(bare)),
        "ratio": round(median(ours) / median(bare), 2),
        "ratios": [round(one / other, 2) for one, other in zip(ours, bare, strict=True)],
        "arrived_after_ms_p50": round(median(late)),
        "arrived_after_ms_p95": round(quantiles(late, n=20)[-1]),
    }


def main() -> None:
    """Measure, and print; fail where it is too slow."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deliveries", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--moves", type=int, default=100)
    options = parser.parse_args()
    os.environ["BENCHMARK_WEBHOOKS"] = "1"
    here, there = multiprocessing.Pipe()
    receiver = multiprocessing.get_context("spawn").Process(target=_receive, args=(there,), daemon=True)
    receiver.start()
    url = f"http://127.0.0.1:{here.recv()}/"
    with site():
        print(f"PostgreSQL {server_version()}")
        found = measure(options.deliveries, options.rounds, options.moves, url)
    print(json.dumps(found, indent=2))
    receiver.terminate()
    if found["ratio"] < 0.5 or found["arrived_after_ms_p95"] > 1000:
        raise SystemExit("Too slow: at least half of the bare client, and within a second.")


if __name__ == "__main__":
    main()
