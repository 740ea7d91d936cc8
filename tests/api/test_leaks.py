"""What is another's is asked for as often, and answered alike, as what is not there."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.conftest import ROOT
from tests.api.test_roles import RULES
from timeline import policy
from timeline.lifecycle import State
from timeline.shortcuts import emit, start

BY_ID = sorted(route for route, rule in RULES.items() if rule.sees)
ABSENT = {
    "task": "00000000-0000-0000-0000-000000000001",
    "user": "987654",
    "seat": "00000000-0000-0000-0000-000000000002",
}


def addresses(path, theirs):
    """Addresses of what is another's, each with one of the same form where nothing is."""
    if "tasks/{id}" in path:
        yield path.replace("{id}", str(theirs["task"].pk)), path.replace("{id}", ABSENT["task"])
    for label, kind in {"accounts.user": "user", "testapp.seat": "seat"}.items():
        if "{label}" in path or (kind == "user" and "users/" in path):
            named = path.replace("{label}", label)
            yield named.replace("{id}", str(theirs[kind].pk)), named.replace("{id}", ABSENT[kind])


def ask(client, method, path):
    with CaptureQueriesContext(connection) as queries:
        body = {"data": {"reason": "x"}, "content_type": "application/json"} if method == "POST" else {}
        answer = getattr(client, method.lower())(f"{ROOT}{path}", **body)
    return answer, len(queries)


@pytest.mark.parametrize("owned", [0, 2])
@pytest.mark.parametrize("few", [1, 1000])
@pytest.mark.parametrize(("method", "path"), BY_ID)
def test_takes_as_many_queries_for_anothers_as_for_what_is_not_there(
    asked_by, ada, person, seat, about, clock, monkeypatch, method, path, owned, few
):
    monkeypatch.setattr(policy, "FEW", few)
    ben = person("ben")
    seats = [seat(ben) for _ in range(3)]
    emit("user.created", ben)
    for one in seats:
        start("seating", one)
    for _ in range(owned):
        start("seating", seat(ada))
    theirs = {"user": ben, "seat": seats[0], "task": about("account.call", ben, state=State.COMPLETED)}
    client = asked_by(ada).client

    for foreign, absent in addresses(path, theirs):
        [there, queries], [nothing, without] = ask(client, method, foreign), ask(client, method, absent)

        assert queries == without, foreign
        assert there.status_code == nothing.status_code == 404
        assert (there.content, dict(there.headers)) == (nothing.content, dict(nothing.headers))
