"""The demo: the story told in the terminal, and lived with a site and a worker as processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from smtplib import SMTPRecipientsRefused
from urllib.request import urlopen

import pytest
from django.conf import settings
from django.core.mail import EmailMessage
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from project.accounts.mails import MailRefused, send_reminder
from project.accounts.models import User
from project.demo import clock
from project.demo.browsers import HttpBrowser
from project.demo.joining import NAMES
from project.demo.live import is_down
from project.demo.mailing import MailServer, let_be_down
from project.demo.management.commands.demo import Command
from project.demo.people import FULL, newcomers, people
from tests.brokers import free_port
from tests.processes import DEADLINE, wait_for

pytestmark = pytest.mark.processes

SETTLING = 360  # Seconds: it gives up by itself before.


def demo(tmp_path, *arguments, **given):
    """Start the demo's command in a folder of its own."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "project.settings",
        "DEMO_DIR": str(tmp_path / "demo"),
        **given,
    }
    for name in ("DEMO_CLOCK", "DEMO_STORY", "OUTSIDE_URL", "DEBUG", "SECRET_KEY"):
        environment.pop(name, None)
    command = [sys.executable, "manage.py", "demo", *arguments]
    with (tmp_path / "out.txt").open("wb") as log:
        return subprocess.Popen(command, cwd=settings.BASE_DIR, env=environment, stdout=log, stderr=log)


class TestTold:
    def test_ends_with_a_table_and_a_story(self, tmp_path):
        process = demo(tmp_path, "--no-server", "--users", "16", "--days", "50")

        assert process.wait(DEADLINE) == 0
        shown = (tmp_path / "out.txt").read_text()
        assert "POST /  email=ada@example.com" in shown
        assert re.search(r"trial.remind +│ +10 │ +0 │ +0 │ closed 2, paid 4", shown)
        assert re.search(r"trial.check_script_usage +│ +6 │ +0 │ +0 │ paid 2", shown)
        assert "cleo@example.com, who pays on day 27" in shown
        assert "the run ended by the exit “paid”" in shown

    def test_refuses_nobody_at_no_time(self, tmp_path):
        process = demo(tmp_path, "--no-server", "--users", "0")

        assert process.wait(DEADLINE) == 1
        assert "must be positive" in (tmp_path / "out.txt").read_text()

    def test_begins_with_the_checks_that_its_processes_skip(self, monkeypatch, settings, tmp_path):
        def refuse(*_given, **_options):
            raise SystemCheckError("wrong")

        settings.DATA_DIR = tmp_path
        monkeypatch.setattr(Command, "check", refuse)

        with pytest.raises(SystemCheckError, match="wrong"):
            call_command("demo", no_server=True)


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

        assert process.wait(DEADLINE) == 1
        assert "Start one, or name another in BROKER_URL." in (tmp_path / "out.txt").read_text()

    @pytest.mark.needs("node")  # of ojs
    def test_has_jobs_that_a_worker_in_node_takes_and_another_one_when_it_is_killed(self, tmp_path, monkeypatch):
        port = free_port()
        process = demo(tmp_path, "--port", str(port), "--users", "4")
        try:
            shown = self.wait_for_links(tmp_path, process)
            browser = HttpBrowser(f"http://127.0.0.1:{port}")
            browser.get(re.search(r"(/demo/\?key=\S+)", shown).group(1))
            token = re.search(r'csrfmiddlewaretoken" value="([^"]+)', browser.get("/demo/").text).group(1)
            browser.post("/demo/job/", {"csrfmiddlewaretoken": token})
            assert "No worker took it yet" in browser.get("/demo/?part").text

            key, command = re.search(r"JOBS_KEY=(\S+) (node project/worker.mjs http\S+)", shown).groups()
            monkeypatch.setenv("JOBS_KEY", key)
            first = subprocess.Popen(command.split(), cwd=settings.BASE_DIR)
            wait_for(lambda: f"node-{first.pid} works on it." in browser.get("/demo/?part").text, "taking the job")
            first.kill()
            first.wait()
            second = subprocess.Popen(command.split(), cwd=settings.BASE_DIR)
            try:
                told = "A worker in Node has told: €9.90, 9,90"
                wait_for(lambda: told in browser.get("/demo/?part").text, "the second worker's report")
            finally:
                second.kill()
                second.wait()
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(DEADLINE) == 0

    def see_it_live(self, tmp_path, *arguments, **given):
        port = free_port()
        process = demo(tmp_path, "--port", str(port), "--seconds-per-day", "0.2", "--users", "8", *arguments, **given)
        try:
            shown = self.wait_for_links(tmp_path, process)
            link = re.search(r"(http://127\.0\.0\.1:\d+/my/\d+:\S+)  ada", shown).group(1)
            # Which of the two depends on who is quicker: her script's call on day 31, or the look on day 32, 0.2 s later.
            page = self.wait_for_page(link, "It still calls; we told you again.", "It does not call any more.")
            # A worker that comes late to the mails meets a mail server that is down; they are dead letters then.
            assert page.count("completed") + page.count("discarded") >= 4
            self.see_the_admin(shown)
            self.see_the_page_of_the_demo(shown)
            self.see_its_clock_in_a_second_terminal(tmp_path)
            self.see_another_worker(tmp_path)
            worker = int(re.search(r"worker pid (\d+)", shown).group(1))
        finally:
            process.send_signal(signal.SIGINT)
            ended = process.wait(DEADLINE)

        assert ended == 0
        assert "Stopped: the site and all that worked for it have ended." in (tmp_path / "out.txt").read_text()
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)
        with pytest.raises(OSError, match="refused"):
            urlopen(link, timeout=DEADLINE)  # noqa: S310

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

    def see_the_page_of_the_demo(self, shown):
        """The first link leads in without a password, and there are charts of the last week, which took 1.4 s."""
        link = re.search(r"(http://\S+/demo/\?key=\S+)", shown).group(1)
        base, path = link[: link.index("/demo/")], link[link.index("/demo/") :]
        browser = HttpBrowser(base)
        assert browser.get(path).location == "/demo/"
        page = browser.get("/demo/").text
        assert 'name="operator"' in page
        token = re.search(r'csrfmiddlewaretoken" value="([^"]+)', page).group(1)
        assert browser.post("/demo/worker/", {"csrfmiddlewaretoken": token}).location == "/demo/"
        give_up = time.monotonic() + DEADLINE
        while "tl-plot" not in (health := browser.get("/admin/timeline/scheduledtask/health/?span=week").text):
            assert time.monotonic() < give_up, health
            time.sleep(0.1)

    def see_another_worker(self, tmp_path):
        """The first one was killed at the button, and the demo goes on."""
        give_up = time.monotonic() + DEADLINE
        while not (told := re.search(r"Another worker begins: pid (\d+)", (tmp_path / "out.txt").read_text())):
            assert time.monotonic() < give_up, (tmp_path / "out.txt").read_text()
            time.sleep(0.1)
        os.kill(int(told.group(1)), 0)

    def see_its_clock_in_a_second_terminal(self, tmp_path):
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "project.settings", "DEMO_DIR": str(tmp_path / "demo")}
        for name in (*NAMES, "DEBUG"):
            environment.pop(name, None)
        command = [sys.executable, "manage.py", "timeline_explain", "ada@example.com"]
        asked = datetime.now(UTC)
        told = subprocess.run(
            command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=True
        )
        now = datetime.fromisoformat(re.search(r"now: (\S+ \S+) UTC", told.stdout).group(1)).replace(tzinfo=UTC)
        assert now > asked + timedelta(days=3)

    def wait_for_links(self, tmp_path, process):
        give_up = time.monotonic() + DEADLINE
        while time.monotonic() < give_up and process.poll() is None:
            shown = (tmp_path / "out.txt").read_text()
            if "worker pid" in shown:
                return shown
            time.sleep(0.1)
        pytest.fail(f"No links were printed: {(tmp_path / 'out.txt').read_text()}")

    def wait_for_page(self, link, *texts):
        give_up = time.monotonic() + DEADLINE
        while time.monotonic() < give_up:
            with urlopen(link, timeout=DEADLINE) as answer:  # noqa: S310
                page = answer.read().decode()
            if any(text in page for text in texts):
                return page
            time.sleep(0.1)
        pytest.fail(f"None of {texts} ever came: {page}")


class TestSettled:
    """The story of the settlement, told and lived."""

    def test_is_paid_once_though_three_workers_are_killed_and_leaves_nothing_running(self, tmp_path):
        process = demo(tmp_path, "--story", "settlement", "--no-server", "--transactions", "1000")

        assert process.wait(SETTLING) == 0, (tmp_path / "out.txt").read_text()
        shown = (tmp_path / "out.txt").read_text()
        for line in (r"paid +│ 1,000", r"paid twice +│ +0", r"batches paid out +│ +10", r"workers killed +│ +3"):
            assert re.search(rf"│ {line} │", shown), line
        assert len(re.findall(r"kill -9 \d+ +at", shown)) == 3
        self.nothing_runs(tmp_path)

    def test_says_what_was_paid_twice_where_keys_are_not_heeded(self, tmp_path):
        """The ninth answer is lost, whatever the kills do: the processor hears of that batch again."""
        process = demo(tmp_path, "--story", "settlement", "--no-server", "--transactions", "1500", "--no-keys")

        assert process.wait(SETTLING) == 1
        assert re.search(r"[1-9]\d* paid twice, 0 not at all", (tmp_path / "out.txt").read_text())

    def test_is_lived_with_a_site(self, tmp_path):
        port = free_port()
        options = ("--port", str(port), "--transactions", "500", "--seconds-per-day", "100")
        process = demo(tmp_path, "--story", "settlement", *options)
        try:
            shown = self.wait_for(tmp_path, process, "completed: 500 paid so far, 0 twice.")
            with urlopen(f"http://127.0.0.1:{port}/admin/login/", timeout=DEADLINE) as page:
                assert page.status == 200
            assert re.search(r"Settlement of \d{4}-\d\d-\d\d: http://\S+/change/", shown)
        finally:
            process.send_signal(signal.SIGINT)
            ended = process.wait(DEADLINE)

        assert ended == 0
        assert "Stopped" in (tmp_path / "out.txt").read_text()
        self.nothing_runs(tmp_path)

    def nothing_runs(self, tmp_path):
        """No process has a log of the demo open."""
        logs = set((tmp_path / "demo").glob("*.log"))
        assert logs
        holders = {file.resolve() for file in Path("/proc").glob("[0-9]*/fd/1") if os.access(file, os.R_OK)}
        assert not logs & holders

    def wait_for(self, tmp_path, process, text):
        give_up = time.monotonic() + DEADLINE
        while time.monotonic() < give_up and process.poll() is None:
            if text in (shown := (tmp_path / "out.txt").read_text()):
                return shown
            time.sleep(0.1)
        pytest.fail(f"{text!r} was not printed: {(tmp_path / 'out.txt').read_text()}")


class TestBooked:
    """The story of the bookings, told."""

    def test_accounts_for_each_though_workers_are_killed(self, tmp_path):
        shown, ends, killed, tries, refused = self.told(tmp_path, bookings=16, within=11)
        # A machine that is busy has hardly begun by then, or most have ended before a worker had anything to be killed at.
        if not (killed and ends.get("BOOKED") and refused > 5):
            shown, ends, killed, tries, refused = self.told(tmp_path, bookings=60, within=90)

        assert ends["BOOKED"] > 0
        assert killed > 0
        assert tries > refused > 5
        assert "How long they rested where" in shown
        assert (
            "each run is where its entries lead, each move is one of the table's, and what rests has a timer." in shown
        )
        assert "booked twice: 0" in shown

    def told(self, tmp_path, *, bookings, within):
        """Tell so many within so many seconds: what was shown, how many ended how, which adds up, and the other counts."""
        folder = tmp_path / str(within)
        folder.mkdir()
        options = ("--story", "booking", "--no-server", "--bookings", str(bookings), "--within", str(within))
        process = demo(folder, *options)

        ended = process.wait(4 * DEADLINE)
        shown = (folder / "out.txt").read_text()
        assert ended == 0, shown
        found = re.findall(r"│ ([A-Z_]+(?: \(still\))?|all) +│ +(\d+) │$", shown, re.MULTILINE)
        ends = {end: int(count) for end, count in found}
        assert sum(count for end, count in ends.items() if end != "all") == ends["all"] == bookings
        counts = r"Workers killed: (\d+)\..*old rows saved: (\d+) tries, (\d+) refused.*moved by them: 0\."
        return shown, ends, *map(int, re.search(counts, shown, re.DOTALL).groups())


class TestClock:
    def test_begins_when_it_is_told_to(self, monkeypatch):
        monkeypatch.setenv("DEMO_CLOCK", "")
        begin = datetime(2026, 11, 24, 18, 0, tzinfo=UTC)

        clock.set_going(seconds_per_day=86_400, begin=begin)

        assert timedelta(seconds=-1) < clock.now() - begin < timedelta(minutes=10)  # Two clocks may differ a little.

    def test_runs_as_fast_as_it_is_told(self, monkeypatch):
        begin = time.time() - 10
        monkeypatch.setenv("DEMO_CLOCK", f"{begin} 2")

        earliest = time.time()
        told = clock.now().timestamp()
        latest = time.time()

        assert (earliest - begin) * 43_200 - 1 <= told - begin <= (latest - begin) * 43_200 + 1


class TestSettableClock:
    def test_is_set_on_and_runs_on_from_there(self, monkeypatch, tmp_path):
        monkeypatch.setenv("DEMO_CLOCK", "")
        begin = datetime(2026, 11, 24, 18, 0, tzinfo=UTC)
        running = clock.SettableClock(tmp_path / "clock", seconds_per_day=86_400, begin=begin)
        running.set(begin + timedelta(days=2))
        running.run_at(8640)

        assert timedelta(seconds=-1) < clock.now() - begin - timedelta(days=2) < timedelta(hours=2)
        assert os.environ["DEMO_CLOCK"] == f"@{tmp_path / 'clock'}"


class TestPeople:
    def test_makes_as_many_as_asked_each_with_an_address_of_their_own(self):
        crowd = list(people(100))

        assert len({person.email for person in crowd}) == 100
        assert {action for person in crowd for _day, action in person.actions} == {"pay", "extend", "close", "call"}

    def test_lets_others_come_without_end_of_whom_some_have_a_full_mailbox(self):
        crowd = [*people(24), *islice(newcomers(24), 70)]

        assert len({person.email for person in crowd}) == 94
        assert sum(person.email.endswith(FULL) for person in crowd) == 10


class TestMailServer:
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path, settings):
        settings.DATA_DIR = tmp_path

    def test_is_down_for_a_day_now_and_then(self):
        assert [day for day in range(60) if is_down(day)] == [27, 41, 55]

    def test_takes_nothing_while_it_is_down(self, tmp_path):
        server, message = MailServer(file_path=str(tmp_path)), EmailMessage("Hello", to=["ada@example.com"])

        assert let_be_down(True)
        with pytest.raises(ConnectionRefusedError):
            server.send_messages([message])

        assert let_be_down(False)
        assert not let_be_down(False)
        assert server.send_messages([message]) == 1

    def test_takes_nothing_for_a_full_mailbox(self, tmp_path):
        with pytest.raises(SMTPRecipientsRefused):
            MailServer(file_path=str(tmp_path)).send_messages([EmailMessage("Hello", to=[f"ben@{FULL}"])])

    def test_is_told_of_in_words(self, monkeypatch, tmp_path, now):
        server = MailServer(file_path=str(tmp_path))
        monkeypatch.setattr(
            "project.accounts.mails.send_mail", lambda *said: server.send_messages([EmailMessage("Hello", to=said[-1])])
        )

        with pytest.raises(
            MailRefused, match=r"^No mail is taken for ben@full.example.com: The mailbox is full. \(552\)$"
        ):
            send_reminder(User(email=f"ben@{FULL}", website="ben.example", trial_ends_at=now))

    def test_is_told_of_in_words_also_for_a_name_that_is_sent_in_other_letters(self, monkeypatch, now):
        def refuse(*_said):
            raise SMTPRecipientsRefused({"ben@xn--bcher-kva.example": (550, b"No such mailbox.")})

        monkeypatch.setattr("project.accounts.mails.send_mail", refuse)

        with pytest.raises(MailRefused, match=r"No such mailbox. \(550\)$"):
            send_reminder(User(email="ben@bücher.example", website="ben.example", trial_ends_at=now))
