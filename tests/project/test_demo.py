"""The demo: the story told in the terminal, and lived with a site and a worker as processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from urllib.request import urlopen

import pytest
from django.conf import settings

from project.demo import clock
from project.demo.browsers import HttpBrowser
from project.demo.people import people
from tests.brokers import free_port

pytestmark = pytest.mark.processes


def demo(tmp_path, *arguments, **given):
    """Start the demo's command in a folder of its own."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "project.settings",
        "DEMO_DIR": str(tmp_path / "demo"),
        **given,
    }
    for name in ("DEMO_CLOCK", "DEBUG", "SECRET_KEY"):
        environment.pop(name, None)
    command = [sys.executable, "manage.py", "demo", *arguments]
    with (tmp_path / "out.txt").open("wb") as log:
        return subprocess.Popen(command, cwd=settings.BASE_DIR, env=environment, stdout=log, stderr=log)


class TestTold:
    def test_ends_with_a_table_and_a_story(self, tmp_path):
        process = demo(tmp_path, "--no-server", "--users", "16", "--days", "50")

        assert process.wait(60) == 0
        shown = (tmp_path / "out.txt").read_text()
        assert "POST /  email=ada@example.com" in shown
        assert re.search(r"trial.remind +│ +10 │ +0 │ +0 │ closed 2, paid 4", shown)
        assert re.search(r"trial.check_script_usage +│ +6 │ +0 │ +0 │ paid 2", shown)
        assert "cleo@example.com, who pays on day 27" in shown
        assert "the run ended by the exit “paid”" in shown

    def test_refuses_nobody_at_no_time(self, tmp_path):
        process = demo(tmp_path, "--no-server", "--users", "0")

        assert process.wait(60) == 1
        assert "must be positive" in (tmp_path / "out.txt").read_text()


class TestLived:
    def test_lets_rows_move_by_themselves_and_leaves_nothing_running(self, tmp_path):
        self.see_it_live(tmp_path)

    @pytest.mark.parametrize("broker", ["redis"], indirect=True)
    def test_does_the_same_with_celery(self, tmp_path, broker):
        """A worker for tasks, one for polls alone, and beat."""
        self.see_it_live(tmp_path, "--celery", BROKER_URL=broker.url, QUEUE_PREFIX=broker.prefix)

        logs = {log.stem: log.read_text() for log in (tmp_path / "demo").glob("*.log")}
        assert {"site", "worker", "poll-worker", "beat"} <= set(logs)
        assert f"{broker.prefix}-poll" not in logs["worker"]
        assert f"{broker.prefix}-poll" in logs["poll-worker"]

    def test_says_what_to_do_without_a_broker(self, tmp_path):
        process = demo(tmp_path, "--celery", BROKER_URL=f"redis://127.0.0.1:{free_port()}/0")

        assert process.wait(60) == 1
        assert "Start one, or name another in BROKER_URL." in (tmp_path / "out.txt").read_text()

    def see_it_live(self, tmp_path, *arguments, **given):
        port = free_port()
        process = demo(tmp_path, "--port", str(port), "--seconds-per-day", "0.2", "--users", "8", *arguments, **given)
        try:
            shown = self.wait_for_links(tmp_path, process)
            link = re.search(r"(http://127\.0\.0\.1:\d+/my/\d+:\S+)  ada", shown).group(1)
            page = self.wait_for_page(link, "It still calls; we told you again.")
            assert page.count("completed") >= 4
            self.see_the_admin(shown)
            worker = int(re.search(r"worker pid (\d+)", shown).group(1))
        finally:
            process.send_signal(signal.SIGINT)
            ended = process.wait(30)

        assert ended == 0
        assert "Stopped: the site and all that worked for it have ended." in (tmp_path / "out.txt").read_text()
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)
        with pytest.raises(OSError, match="refused"):
            urlopen(link, timeout=2)  # noqa: S310

    def see_the_admin(self, shown):
        """The link to upcoming events and the password that are printed lead in."""
        link = re.search(r"(http://\S+/admin/timeline/scheduledtask/)  upcoming events", shown).group(1)
        email, password = re.search(r"log in as (\S+) with the password (\S+)", shown).groups()
        base, path = link[: link.index("/admin/")], link[link.index("/admin/") :]
        browser = HttpBrowser(base)
        token = re.search(r'csrfmiddlewaretoken" value="([^"]+)', browser.get("/admin/login/").text).group(1)
        form = {"username": email, "password": password, "csrfmiddlewaretoken": token, "next": path}
        assert browser.post("/admin/login/", form).location == path
        assert "Upcoming events" in browser.get(path).text

    def wait_for_links(self, tmp_path, process):
        give_up = time.monotonic() + 60
        while time.monotonic() < give_up and process.poll() is None:
            shown = (tmp_path / "out.txt").read_text()
            if "extends on day 20 and pays" in shown:
                return shown
            time.sleep(0.1)
        pytest.fail(f"No links were printed: {(tmp_path / 'out.txt').read_text()}")

    def wait_for_page(self, link, text):
        give_up = time.monotonic() + 60
        while time.monotonic() < give_up:
            with urlopen(link, timeout=20) as answer:  # noqa: S310
                page = answer.read().decode()
            if text in page:
                return page
            time.sleep(0.1)
        pytest.fail(f"{text!r} never came.")


class TestClock:
    def test_runs_as_fast_as_it_is_told(self, monkeypatch):
        monkeypatch.setenv("DEMO_CLOCK", f"{time.time() - 10} 2")

        elapsed = clock.now().timestamp() - (time.time() - 10)

        assert elapsed == pytest.approx(5 * 86_400, rel=0.1)


class TestPeople:
    def test_makes_as_many_as_asked_each_with_an_address_of_their_own(self):
        crowd = list(people(100))

        assert len({person.email for person in crowd}) == 100
        assert {action for person in crowd for _day, action in person.actions} == {"pay", "extend", "close", "call"}
