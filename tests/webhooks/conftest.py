"""A receiver on this machine, a machine that tells, and an endpoint for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.webhooks.receiving import Receiver, Told, self_signed
from timeline.testing import StoryClock, only_timelines
from timeline.webhooks.models import Endpoint
from timeline.webhooks.opening import open_endpoint
from timeline.webhooks.receivers import assume_none


@pytest.fixture(scope="session")
def _server() -> Iterator[Receiver]:
    with Receiver() as server:
        yield server


@pytest.fixture
def receiver(_server: Receiver) -> Receiver:
    """A server that answers as its ``answer`` says, and keeps what it was sent."""
    _server.reset()
    return _server


@pytest.fixture(autouse=True)
def _loopback(settings: Any) -> Iterator[None]:
    settings.TIMELINE_WEBHOOKS = settings.TIMELINE_WEBHOOKS | {"ALLOW_LOOPBACK": True}
    yield
    assume_none("default")


@pytest.fixture
def clock(db: Any, now: Any) -> Iterator[StoryClock]:
    """Story time that stands still; only the machine of these tests is known."""
    with only_timelines(Told), StoryClock(now) as clock:
        yield clock


@pytest.fixture
def endpoint_for(receiver: Receiver, clock: StoryClock) -> Callable[..., Endpoint]:
    """Open an endpoint at the receiver: ``endpoint_for("told", path="/a")``; its secret is in ``endpoint.shown``."""

    def make(*topics: str, path: str = "/", **columns: Any) -> Endpoint:
        endpoint, secret = open_endpoint(
            url=receiver.url + path, topics=list(topics), now=clock.now, using="default", **columns
        )
        endpoint.shown = secret  # type: ignore[attr-defined]
        return endpoint

    return make


@pytest.fixture
def tls_receiver(tmp_path: Any) -> Iterator[Receiver]:
    """A receiver with a certificate that signed itself, for ``localhost``."""
    with Receiver(certificate=self_signed(tmp_path)) as server:
        yield server
