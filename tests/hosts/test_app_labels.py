"""An app whose label is not the name of its module: entities go by the label, timelines are found by the module."""

from __future__ import annotations

from datetime import timedelta

from django.core.management import call_command

from tests.hosts.warehouse.models import Crate
from timeline.registry import registry
from timeline.testing import expect


class TestAnAppWithALabelOfItsOwn:
    def test_has_its_timelines_found(self):
        assert registry.timeline("storage").label == "depot.crate"

    def test_lets_them_run(self, clock, capsys):
        crate = Crate.objects.create(opens_at=clock.now + timedelta(days=2))

        [done] = clock.advance(days=3)

        assert (done.entity_ref, done.result) == (("depot.crate", str(crate.pk)), "depot.Crate")
        call_command("timeline_explain", "depot.crate", str(crate.pk))
        assert "storage.open" in capsys.readouterr().out

    def test_has_its_rows_follow(self, clock):
        crate = Crate.objects.create(opens_at=clock.now + timedelta(days=2))

        crate.opens_at += timedelta(days=1)
        crate.save()

        expect(crate).scheduled("open", at=crate.opens_at)
