"""Whose database it is: a copy of another site's is left alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, transaction

from timeline.clocks import MachineTime
from timeline.exceptions import WrongSite
from timeline.models import Identity
from timeline.store.site import confirm_site, sign_of_poller, stamp


@pytest.fixture
def site(db, settings):
    """Say which site this is: ``site("staging")``."""

    def say(name):
        settings.TIMELINE = {"SITE": name}

    return say


@pytest.fixture
def production(site, now):
    """A database that production stamped."""
    Identity.objects.all().delete()
    site("production")
    stamp(now=now, using="default")
    return Identity.objects.get()


class TestStamp:
    def test_gives_a_new_database_the_site_of_the_settings(self, production, now):
        assert (production.site, production.adopted_at, production.polled_at) == ("production", now, None)

    def test_leaves_a_database_that_has_one(self, production, site, now):
        site("staging")

        stamp(now=now, using="default")

        assert Identity.objects.get() == production
        assert Identity.objects.get().site == "production"

    def test_is_done_by_migrate(self, db):
        """The tests' own database was migrated with no site named."""
        assert Identity.objects.get().site == ""

    def test_a_second_identity_is_refused_by_the_database(self, production, now):
        with pytest.raises(IntegrityError), transaction.atomic():
            Identity.objects.create(pk=2, site="staging", adopted_at=now)


class TestConfirmSite:
    def test_passes_at_home(self, production):
        confirm_site(using="default")

    @pytest.mark.parametrize(("ours", "said"), [("staging", "is 'staging'"), ("", "is not set")])
    def test_refuses_elsewhere_and_says_how_to_go_on(self, production, site, ours, said):
        site(ours)

        with pytest.raises(WrongSite, match=r"timeline_adopt --clear --database default") as raised:
            confirm_site(using="default")

        assert "that of the site 'production'" in str(raised.value)
        assert said in str(raised.value)
        assert "--keep" in str(raised.value)

    def test_takes_a_database_without_an_identity_for_one_of_no_site(self, site):
        Identity.objects.all().delete()

        site("")
        confirm_site(using="default")

        site("staging")
        with pytest.raises(WrongSite, match="of no named site"):
            confirm_site(using="default")


class TestSignOfPoller:
    def test_leaves_the_time_by_the_real_clock(self, production):
        sign_of_poller(using="default")

        assert abs(Identity.objects.get().polled_at - datetime.now(UTC)) < timedelta(minutes=1)

    def test_writes_once_an_interval(self, production, settings, django_assert_num_queries):
        settings.TIMELINE = {"SITE": "production", "POLL_INTERVAL": timedelta(seconds=30)}
        sign_of_poller(using="default")

        with django_assert_num_queries(1):
            sign_of_poller(using="default")

    def test_writes_again_after_an_interval(self, production):
        before = timedelta(seconds=60)
        Identity.objects.update(polled_at=MachineTime(-before))

        sign_of_poller(using="default")

        assert not Identity.objects.unpolled(timedelta(seconds=30)).exists()

    def test_leaves_none_elsewhere(self, production, site):
        site("staging")

        with pytest.raises(WrongSite):
            sign_of_poller(using="default")

        assert Identity.objects.get().polled_at is None
