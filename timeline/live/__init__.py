"""Live pages: an open page shows within two seconds what was committed. Pages of a host: ``live_page``, how-to/hosting.md."""

from __future__ import annotations

from timeline.live.pages import live_page

__all__ = ["live_page"]
