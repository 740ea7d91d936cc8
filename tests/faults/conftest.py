"""Servers of the fault kit, one for all its tests, and a site with a database of its own for each."""

from __future__ import annotations

import itertools

import pytest

from tests.faults.harness.links import Links
from tests.faults.harness.postgres import Postgres
from tests.faults.harness.redis_server import Redis
from tests.faults.harness.site import Site, new_folder, remove_folder
from tests.tools import TOOLS

pytest.register_assert_rewrite("tests.faults.races")

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres():
    """A server of PostgreSQL that may be killed, with a migrated database ``template``."""
    folder = new_folder()
    server = Postgres(folder / "pg")
    journals = folder / "journals"
    journals.mkdir()
    Site(server, "template", journals)
    yield server
    server.remove()
    remove_folder(folder)


@pytest.fixture
def site(postgres, tmp_path):
    """A site with a database and journals of its own."""
    return Site(postgres, f"site{next(_numbers)}", tmp_path, template="template")


@pytest.fixture
def redis_server(tmp_path):
    """A Redis of our own; skipped, with the remedy, where none can be started."""
    if not TOOLS["redis-server"].found():
        pytest.skip(f"no redis-server on the path: {TOOLS['redis-server'].remedy}")
    server = Redis(tmp_path)
    yield server
    server.kill()


@pytest.fixture
def links():
    """A thread for links."""
    with Links() as opened:
        yield opened
