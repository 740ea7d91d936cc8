"""The identity of a database: one row, and how long ago something was."""

from __future__ import annotations

from datetime import timedelta

import pytest

from timeline.clocks import MachineTime
from timeline.models import Identity

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


class TestUnpolled:
    @pytest.mark.parametrize(("ago", "found"), [(None, True), (2 * MINUTE, True), (MINUTE / 2, False)])
    def test_is_it_if_nobody_polled_for_so_long(self, ago, found):
        Identity.objects.update(polled_at=None if ago is None else MachineTime(-ago))

        assert Identity.objects.unpolled(MINUTE).exists() is found


class TestThere:
    @pytest.mark.parametrize(("ago", "found"), [(2 * MINUTE, True), (MINUTE / 2, False)])
    def test_is_it_if_it_has_been_this_sites_for_so_long(self, ago, found):
        Identity.objects.update(adopted_at=MachineTime(-ago))

        assert Identity.objects.there(MINUTE).exists() is found
