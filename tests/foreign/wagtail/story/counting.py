"""How many queries Wagtail's own work takes; the same with ours installed and without."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

from django.db import connection
from django.test.utils import CaptureQueriesContext
from pages.models import PressPage
from wagtail.models import Page

from story.site import home


def counts() -> dict[str, int]:
    """Queries of saves of pages that no run is open about."""
    model_of = {"page": Page, "press release": PressPage}
    found = {}
    for name, model in model_of.items():
        page = home().add_child(instance=model(title=f"Counted {uuid4().hex[:8]}"))
        page.save()  # What is looked up once only, is by now.
        found[f"save of a {name}"] = _queries(page.save)
        found[f"save of a {name}'s title alone"] = _queries(lambda page=page: page.save(update_fields=["title"]))
        found[f"draft of a {name}"] = _queries(page.save_revision)
        found[f"deletion of a {name}"] = _queries(page.delete)
    return found


def _queries(work: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as captured:
        work()
    return len(captured)
