"""Commands in another terminal join the demo: its clock, its story, its keys."""

from __future__ import annotations

import stat

from project.demo.joining import FILE, join, tell


def told(tmp_path, monkeypatch, **given):
    for name in ("DEMO_CLOCK", "QUEUE_PREFIX", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    tell(tmp_path)


def joined(command, folder, **environ):
    join(command, folder, environ)
    return environ


class TestJoining:
    def test_takes_the_clock_and_nothing_that_is_not_the_demos(self, tmp_path, monkeypatch):
        told(tmp_path, monkeypatch, DEMO_CLOCK="@clock", HOME="/root")

        given = joined("timeline_doctor", tmp_path)

        assert given["DEMO_CLOCK"] == "@clock"
        assert "HOME" not in given

    def test_leaves_what_is_given(self, tmp_path, monkeypatch):
        told(tmp_path, monkeypatch, DEMO_CLOCK="@clock", QUEUE_PREFIX="theirs")

        assert joined("timeline_doctor", tmp_path, DEMO_CLOCK="0 1") == {"DEMO_CLOCK": "0 1"}
        assert joined("timeline_doctor", tmp_path, QUEUE_PREFIX="ours")["QUEUE_PREFIX"] == "ours"

    def test_leaves_other_commands_alone(self, tmp_path, monkeypatch):
        told(tmp_path, monkeypatch, DEMO_CLOCK="@clock")

        for command in ("demo", "migrate", "runserver", ""):
            assert joined(command, tmp_path) == {}

    def test_is_nothing_where_no_demo_has_run(self, tmp_path):
        assert joined("timeline_doctor", tmp_path) == {}

    def test_is_for_one_user(self, tmp_path, monkeypatch):
        told(tmp_path, monkeypatch, QUEUE_PREFIX="theirs")

        assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
