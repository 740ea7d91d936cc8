"""Which tests start processes, or need what another process is: told by the fixtures that they use."""

from __future__ import annotations

from typing import Final

FIXTURES: Final = frozenset({"benchmark", "broker", "live_server", "new_project", "wheel", "workers"})
MARK: Final = "processes"
