"""Requests that nobody means well with are answered as others are, and never by an error of the server."""

from __future__ import annotations

import json
from itertools import product
from random import Random
from urllib.parse import quote

import pytest

from timeline.ojs.routes import VIEWS

ODD = [
    None,
    True,
    -1,
    2**70,
    1e308,
    "",
    "\x00",
    "\ud800",
    "a" * 5000,
    [],
    [[]],
    [None],
    {},
    {"a": {"b": []}},
    "+PT1S",
    "P1Y",
]
NAMES = [
    "type",
    "args",
    "meta",
    "options",
    "id",
    "queues",
    "count",
    "worker_id",
    "job_id",
    "error",
    "result",
    "attempt",
]
NAMES += ["active_jobs", "visibility_timeout_ms", "requeue", "name", "expression", "timezone", "job_template", "jobs"]
OPTIONS = [
    "queue",
    "priority",
    "scheduled_at",
    "delay_until",
    "expires_at",
    "timeout_ms",
    "tags",
    "pending",
    "retry",
    "unique",
]
WELL = {"type": "a", "args": [], "queues": ["default"], "name": "n", "expression": "@daily", "worker_id": "w"}
WELL |= {"error": {"code": "c", "message": "m"}, "jobs": [{"type": "a", "args": []}]}


def addresses(odd):
    """All addresses, with something odd where they take a name."""
    return sorted({address.replace("<str:key>", odd).replace("<str:name>", odd) for address in VIEWS})


@pytest.mark.parametrize("odd", ["x", "%00", "%F0%9F%98%80", "a" * 3000, "..", "019539a4-aaaa-7000-8000-111111111111"])
def test_odd_names_in_addresses(server, odd):
    for address, method in product(addresses(odd), ("GET", "POST", "DELETE", "PUT", "PATCH")):
        said = server.client.generic(method, f"/ojs/{address}", "{}", content_type="application/json")
        assert said.status_code < 500, (method, address, said.content)
        assert said["Content-Type"] == "application/openjobspec+json"


@pytest.mark.parametrize("value", ["\x00", "-1", "\u0663", "9" * 30, "a,b", ",", "%", "\U0001f600", "A"])
def test_odd_queries(server, value):
    names = ["limit", "offset", "cursor", "queue", "types", "queues", "job_types", "after"]
    for address, name in product(["dead-letter", "cron", "queues", "events"], names):
        said = server.client.get(f"/ojs/v1/{address}?{name}={quote(value)}")
        assert said.status_code in (200, 400), (address, name, said.content)


@pytest.mark.parametrize("seed", range(4))
def test_odd_bodies(server, seed):
    chance = Random(seed)  # noqa: S311 (repeatable)
    posts = [address for address in addresses("019539a4-aaaa-7000-8000-111111111111") if address.startswith("v1")]
    for _each in range(150):
        body = dict(WELL)
        for name in chance.sample(NAMES, 2):
            body[name] = chance.choice(ODD)
        if chance.random() < 0.5:
            body["options"] = {chance.choice(OPTIONS): chance.choice(ODD)}
        if chance.random() < 0.3:
            body["options"] = {
                chance.choice(["retry", "unique"]): {chance.choice(OPTIONS): chance.choice(ODD), "keys": ODD[8]}
            }
        address = chance.choice(posts)
        said = server.client.generic("POST", f"/ojs/{address}", json.dumps(body), content_type="application/json")
        assert said.status_code < 500, (address, body, said.content)


DEEP = json.loads("[" * 900 + "]" * 900)


@pytest.mark.parametrize("seed", range(4))
def test_odd_workflows(server, seed):
    chance = Random(seed)  # noqa: S311 (repeatable)
    odd = [*ODD, DEEP, {"type": "a", "args": DEEP}, [{"type": "a", "args": []}] * 3]

    def job():
        found = {"type": "a", "args": [], chance.choice([*NAMES, *OPTIONS]): chance.choice(odd)}
        return chance.choice([found, {"type": "a", "args": []}, chance.choice(odd)])

    statuses = set()
    for _each in range(150):
        kind = chance.choice(["chain", "group", "batch"])
        body = {"type": kind, "steps": [job(), job()], "jobs": [job(), job()]}
        roles = ["on_complete", "on_success", "on_failure", chance.choice(["\ud800", "x", "\x00"])]
        body["callbacks"] = {chance.choice(roles): job()}
        if chance.random() < 0.3:
            body[chance.choice([*body, "name", "options", "note", "id"])] = chance.choice(odd)
        said = server.client.generic("POST", "/ojs/v1/workflows", json.dumps(body), content_type="application/json")
        assert said.status_code in (201, 400, 422), (body, said.content)
        statuses.add(said.status_code)
        if said.status_code == 201:
            address = f"v1/workflows/{said.json()['workflow']['id']}"
            server.get(address)
            for taken in server.fetch("default", count=3):
                server.ack(taken["id"])
            assert server.client.delete(f"/ojs/{address}").status_code in (200, 409)
    assert statuses >= {201, 400}
