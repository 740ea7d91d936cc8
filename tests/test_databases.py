"""The server that tests start by themselves, on a machine that has other users, too."""

import os
import tempfile

from tests.databases import one_at_a_time


class TestOneAtATime:
    def test_needs_no_file_of_another_user(self, tmp_path, monkeypatch):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        (tmp_path / "timeline-tests-server.lock").mkdir()  # As one that cannot be opened.
        (tmp_path / f"timeline-tests-server-{os.getuid() + 1}.lock").mkdir()

        with one_at_a_time():
            [made] = [path for path in tmp_path.iterdir() if path.is_file()]

        assert str(os.getuid()) in made.name
