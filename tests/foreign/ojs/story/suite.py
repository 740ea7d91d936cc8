"""The public conformance suite of the Open Job Specification, against a server process of ours."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from django.db import transaction
from seeing import eventually, folder, seen, worker

from story.matching import MISSING, at, filled, problems
from timeline.clocks import story_now
from timeline.lifecycle import Reason
from timeline.ojs.jobs import all_jobs
from timeline.operations.cancel import cancel

# What fails, and why. The run fails if another test does, or one of these passes.
OTHER: Final = {
    "L1-RTR-014 retry-error-history-tracked": (
        "It sends the code handler_error, and wants to read ConnectionTimeout, which nobody has said."
    ),
}
LEVELS: Final = ("level-0-core", "level-1-reliable", "level-2-scheduled", "level-3-workflows", "level-4-advanced")
LEAST: Final = 133  # Tests of these levels; fewer: the folder is not the suite.
KIND: Final = "application/openjobspec+json"


class Answer(NamedTuple):
    """What the server has answered."""

    status: int
    headers: Mapping[str, str]
    body: Any


@seen("the public conformance suite passes at levels 0 to 4, but for what is named with its reason")
def suite() -> str:
    where = Path(os.environ["OJS_CONFORMANCE"])
    files = [file for level in LEVELS for file in sorted((where / level).rglob("*.json"))]
    tests = sorted((json.loads(file.read_text()) for file in files), key=lambda test: str(test["test_id"]))
    assert len(tests) >= LEAST, f"{where} has {len(tests)} tests of levels 0 to 4. Give the folder suites of the suite."
    with serving() as address, worker():
        failed = {_named(test): found for test in tests if (found := _alone(test, address))}
    unlike = sorted(set(failed) ^ set(OTHER))
    assert not unlike, "\n".join(f"{name}: {failed.get(name, ['passes by now'])[0]}" for name in unlike)
    passed = Counter(str(test["level"]) for test in tests if _named(test) not in failed)
    all_of = Counter(str(test["level"]) for test in tests)
    figures = ", ".join(f"level {level}: {passed[level]} of {all_of[level]}" for level in sorted(all_of))
    return f"{len(tests)} tests, {figures}; see OTHER in {Path(__file__).name}"


def _named(test: Mapping[str, Any]) -> str:
    """What a test is called; some have the same id."""
    return f"{test['test_id']} {test['name']}"


def _alone(test: Mapping[str, Any], address: str) -> list[str]:
    """Do a test, and call off what it leaves: others use the same queues."""
    found = failures(test, address)
    with transaction.atomic():
        left = list(all_jobs(using="default").open().by_id().values_list("pk", flat=True))
        cancel(task_ids=left, reason=Reason.operator("Its test is over."), now=story_now("default"), using="default")
    return found


@contextmanager
def serving() -> Iterator[str]:
    """Have a server run as a process of its own; gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "django", "runserver", "--noreload", f"127.0.0.1:{port}"]
    address = f"http://127.0.0.1:{port}"
    with (folder() / "server.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        eventually(lambda: _answers(address))
        yield address
    finally:
        process.kill()
        process.wait()


def _answers(address: str) -> bool:
    try:
        return ask(address, {"action": "GET", "path": "/ojs/v1/health"}).status == 200
    except OSError:
        return False


def failures(test: Mapping[str, Any], address: str) -> list[str]:
    """Do the steps of a test; gives what was not as it says."""
    answers: dict[str, Answer] = {}
    found: list[str] = []
    steps = [step for part in ("setup", "teardown") for step in (test.get(part) or {}).get("steps", [])]
    assert not steps, "Tests of the suite prepare something now, which is not known here."
    steps = list(test["steps"])
    while steps:
        beside = [step for step in steps[1:] if step.get("parallel_with") == steps[0]["id"]]
        group = [steps[0], *beside]
        with ThreadPoolExecutor(len(group)) as pool:
            found_so_far = {name: answer.body for name, answer in answers.items()}
            asked = pool.map(partial(done, bodies=found_so_far, address=address), group)
            answers |= {step["id"]: answer for step, answer in zip(group, asked, strict=True)}
        for step in group:
            found += [f"{step['id']} {problem}" for problem in unmet(step.get("assertions") or {}, step["id"], answers)]
            steps.remove(step)
    return found


def done(step: Mapping[str, Any], bodies: Mapping[str, Any], address: str) -> Answer:
    """Do a step: wait, and ask."""
    time.sleep((step.get("delay_ms") or 0) / 1000)
    if step["action"].upper() in ("WAIT", "ASSERT") or "path" not in step:
        time.sleep((step.get("duration_ms") or 0) / 1000)
        return Answer(0, {}, None)
    given = {name: filled(step[name], bodies) for name in ("action", "path", "headers", "body") if name in step}
    return ask(address, {**given, **({"raw": step["raw_body"]} if "raw_body" in step else {})})


def ask(address: str, step: Mapping[str, Any]) -> Answer:
    """Send a request."""
    text = step["raw"] if "raw" in step else json.dumps(step["body"]) if "body" in step else None
    headers = {"Content-Type": KIND, **step.get("headers", {})}
    data = None if text is None else text.encode()
    request = urllib.request.Request(  # noqa: S310 (ours)
        address + step["path"], data, headers, method=step["action"]
    )
    try:
        answer = urllib.request.urlopen(request, timeout=30)  # noqa: S310
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        return Answer(answer.status or 0, dict(answer.headers), json.loads(answer.read() or "null"))


def unmet(said: Mapping[str, Any], step: str, answers: Mapping[str, Answer]) -> Iterator[str]:
    """What of the assertions of a step does not hold."""
    answer, bodies = answers[step], {name: each.body for name, each in answers.items()}
    if "status" in said:
        yield from problems(said["status"], answer.status, "status")
    for name, expected in said.get("headers", {}).items():
        sent = {key.lower(): value for key, value in answer.headers.items()}
        yield from problems(expected, sent.get(name.lower(), MISSING), name)
    for path, expected in said.get("body", {}).items():
        if path == "$or":
            fits = [not [*unmet({"body": each}, step, answers)] for each in expected]
            yield from () if any(fits) else ["no alternative of $or holds"]
        elif path != "$empty":
            yield from problems(filled(expected, bodies), at(filled(path, bodies), answer.body), path)
    for one, other in said.get("equality", {}).items():
        named = re.fullmatch(r"\$\.steps\.(.+)\.response\.body", one)
        assert named, one
        yield from problems(filled(other, bodies), bodies[named[1]], one)
    if claim := said.get("exclusive_claim"):
        taken = [job["id"] for jobs in filled(claim["fetches"], bodies) for job in jobs]
        yield from problems(1, taken.count(filled(claim["job_id"], bodies)), "exclusive_claim")
