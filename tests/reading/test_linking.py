"""Links to pages of the admin: below the address that the host has set, and nowhere else."""

from __future__ import annotations

import pytest
from django.urls import set_script_prefix

from timeline.timelines import link_to

DEAD = "timeline_scheduledtask_dead"


@pytest.fixture
def prefix():
    """Be below a path, as behind a server that says so: ``prefix("/shop/")``."""
    yield set_script_prefix
    set_script_prefix("/")


class TestLinkTo:
    @pytest.mark.parametrize("base", ["https://example.com", "https://example.com/"])
    def test_is_absolute(self, settings, base):
        settings.TIMELINE = {"BASE_URL": base}

        found = link_to(DEAD, using="default", group="a.b & c")

        assert found == "https://example.com/admin/timeline/scheduledtask/dead/?group=a.b+%26+c"

    def test_is_below_the_path_that_is_set_whoever_makes_it(self, settings, prefix):
        """A worker does not know of the path that a web server adds; a process of the site does."""
        settings.TIMELINE = {"BASE_URL": "https://example.com/shop"}
        in_worker = link_to(DEAD, using="default")
        prefix("/shop/")

        assert link_to(DEAD, using="default") == in_worker
        assert in_worker.startswith("https://example.com/shop/admin/")

    def test_is_none_without_an_address_of_the_site(self, settings):
        settings.TIMELINE = {}

        assert link_to(DEAD, using="default") == ""

    def test_is_none_to_a_page_that_shows_another_database(self, settings):
        settings.TIMELINE = {"BASE_URL": "https://example.com"}

        assert link_to(DEAD, using="other") == ""

    @pytest.mark.parametrize("addresses", ["timeline.api.urls", "tests.no_such_module", "tests"])
    def test_is_none_where_the_site_has_no_such_page(self, settings, addresses):
        """A mail must not be lost for it: a worker may have no addresses at all."""
        settings.TIMELINE = {"BASE_URL": "https://example.com"}
        settings.ROOT_URLCONF = addresses

        assert link_to(DEAD, using="default") == ""
