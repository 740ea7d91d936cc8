"""A peer that is asked, as a process."""

from __future__ import annotations

import sys

import pytest

from benchmarks.comparing.processes import Failed, Processes


@pytest.fixture
def nobody():
    """A peer without an adapter."""
    peer = Processes("nobody", sys.executable, {})
    yield peer
    peer.close()


class TestAsk:
    def test_says_what_a_process_said_last_that_failed(self, nobody):
        with pytest.raises(Failed, match=r"(?s)nobody describe: .*No module named 'benchmarks.peers.nobody'$"):
            nobody.ask("describe")

    def test_asks_a_new_one_after_that(self, nobody):
        for command in ("describe", "remove"):
            with pytest.raises(Failed, match=f"(?s)nobody {command}: .*No module named"):
                nobody.ask(command)
