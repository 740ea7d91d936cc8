"""A browser for tests: Debian's Chromium, headless, with a profile of its own; it talks to nobody but the site."""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.test import Client
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from project.accounts.models import User
from tests.admin.conftest import Account, Care
from tests.admin.test_owning import Seating
from tests.processes import DEADLINE
from tests.testapp.models import Order
from tests.tools import TOOLS, chromium
from timeline import Timeline, after, task
from timeline.shortcuts import emit, schedule
from timeline.testing import StoryClock, only_timelines

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
)
AXE = (Path(__file__).parent / "axe.min.js").read_text(encoding="utf-8")
RULES = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"]},
    "rules": {"target-size": {"enabled": True}},  # Of WCAG 2.2; off unless it is asked for.
    # What passes is not listed, and frames there are none.
    "resultTypes": ["violations"],
    "iframes": False,
}
PASSWORD = "of the tests only"  # noqa: S105


class Renewal(Timeline):
    """With names that are longer than a phone is wide."""

    entity = "testapp.Order"
    name = "renewal_of_a_subscription"

    @task(after(days=14))
    def remind_the_customer_that_the_trial_ends_soon(self, order): ...

    @task(after(remind_the_customer_that_the_trial_ends_soon, days=30))
    def look_whether_the_script_is_still_in_use(self, order): ...


class Browser:
    """A browser at the site."""

    def __init__(self, driver, base: str) -> None:
        self.driver = driver
        self.base = base

    def open(self, path: str) -> None:
        self.driver.get(f"{self.base}{path}")

    def log_in(self, user: User) -> None:
        """Open the first page with the session of somebody who has logged in: the form would take longer than most tests do."""
        client = Client()
        client.force_login(user)
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        cookie = {"name": settings.SESSION_COOKIE_NAME, "value": session, "url": self.base, "httpOnly": True}
        self.driver.execute_cdp_cmd("Network.setCookie", cookie)
        self.open("/admin/")
        self.wait_for("#user-tools")

    def find(self, selector: str):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def type(self, selector: str, text: str) -> None:
        self._wait().until(lambda _driver: self.find(selector).send_keys(text) or True)

    def choose(self, selector: str, value: str) -> None:
        self.click(f"{selector} option[value='{value}']")

    def click(self, selector: str) -> None:
        self._wait().until(lambda _driver: self.find(selector).click() or True)

    def follow(self, text: str, *, by: str = By.LINK_TEXT) -> None:
        self._wait().until(lambda driver: driver.find_element(by, text).click() or True)

    def press(self, words: str) -> None:
        """Press the first button that says so."""
        self._wait().until(lambda _driver: self._button(words).click() or True)

    def wait_for(self, selector: str) -> None:
        self._wait().until(lambda _driver: self.driver.find_elements(By.CSS_SELECTOR, selector))

    def wait_for_text(self, text: str) -> None:
        self._wait().until(lambda _driver: text in self.text)

    def wait_for_address(self, part: str) -> None:
        """Until it is at an address with this in it: it goes there a moment after a key or a click."""
        self._wait().until(lambda driver: part in driver.current_url)

    def wait_for_focus(self, selector: str) -> None:
        self.wait_for(f"{selector}:focus")

    def _button(self, words: str):
        return next(one for one in self.driver.find_elements(By.CSS_SELECTOR, "button") if one.text == words)

    def _wait(self) -> WebDriverWait:
        """While one page follows the other, or the list is brought up to date, what was found may be gone: look again."""
        return WebDriverWait(self.driver, DEADLINE, 0.1, ignored_exceptions=[WebDriverException, StopIteration])

    @property
    def text(self) -> str:
        return str(self.find("body").text)

    def complaints(self) -> list[str]:
        """What the console says that is wrong."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def strangers(self) -> set[str]:
        """Hosts other than the site's that were asked for anything."""
        asked = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                address = urlsplit(message["params"]["request"]["url"])
                if address.scheme in ("http", "https", "ws", "wss"):
                    asked.add(address.netloc)
        return asked - {urlsplit(self.base).netloc}

    def barriers(self) -> list[str]:
        """Findings of axe-core on the page against WCAG 2.2, levels A and AA."""
        self.driver.execute_script(AXE)
        found = self.driver.execute_async_script("axe.run(arguments[0]).then(arguments[1])", RULES)
        failed = found["violations"]
        return [f"{rule['id']}: {node['html']} {node['failureSummary']}" for rule in failed for node in rule["nodes"]]

    def width_needed(self) -> int:
        """How wide the page wants to be."""
        return int(self.driver.execute_script("return document.documentElement.scrollWidth"))


class Browsers:
    """
    Browsers that are there already: to start one takes longer than most tests do.

    Args:
        folder: For their profiles.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._drivers: dict[bool, list[webdriver.Chrome]] = {True: [], False: []}

    def take(self, *, scripts: bool) -> webdriver.Chrome:
        """One that nobody has, with a window of its own, that remembers nothing."""
        driver = self._drivers[scripts].pop() if self._drivers[scripts] else self._start(scripts=scripts)
        before = driver.current_window_handle
        driver.switch_to.new_window("window")
        window = driver.current_window_handle
        driver.switch_to.window(before)
        driver.close()
        driver.switch_to.window(window)
        if not scripts:
            driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        for kind in ("browser", "performance"):
            driver.get_log(kind)  # What was said before is not said again.
        return driver

    def give_back(self, driver: webdriver.Chrome, base: str, *, scripts: bool) -> None:
        """Leave the site, so that nothing asks it for anything, and forget it."""
        driver.get("about:blank")
        driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": base, "storageTypes": "all"})
        self._drivers[scripts].append(driver)

    def quit(self) -> None:
        """End all that were given back."""
        for driver in itertools.chain(*self._drivers.values()):
            driver.quit()

    def _start(self, *, scripts: bool) -> webdriver.Chrome:
        options = webdriver.ChromeOptions()
        options.binary_location = chromium() or ""
        if options.binary_location.endswith("headless-shell"):
            options.set_capability("browserName", "chrome-headless-shell")  # Else it is started without a page.
        for flag in (*FLAGS, f"--user-data-dir={tempfile.mkdtemp(dir=self._folder)}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        driver.set_script_timeout(DEADLINE)  # What looks for barriers has a lot to do.
        return driver


@pytest.fixture(scope="session")
def browsers(tmp_path_factory):
    """Those of all tests."""
    browsers = Browsers(tmp_path_factory.mktemp("browsers"))
    yield browsers
    browsers.quit()


@pytest.fixture
def start_browser(live_server, browsers):
    """Give a browser that knows nothing of the site: ``start_browser(scripts=False)``."""
    if not TOOLS["chromium"].found():
        pytest.skip(f"no chromium and chromedriver on the path: {TOOLS['chromium'].remedy}")
    taken = []

    def start(*, scripts: bool = True, width: int = 1280, dark: bool = False) -> Browser:
        driver = browsers.take(scripts=scripts)
        taken.append((driver, scripts))
        size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 500}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [theme]})
        return Browser(driver, live_server.url)

    yield start
    for driver, scripts in taken:
        browsers.give_back(driver, live_server.url, scripts=scripts)


@pytest.fixture
def clock(transactional_db, now):
    """Story time, told to the site's threads too."""
    with only_timelines(Care, Account, Seating, Renewal), StoryClock(now) as clock:
        yield clock


@pytest.fixture
def staff(clock, now):
    """Who may do everything."""
    made = User(email="eva@example.com", is_staff=True, is_superuser=True, signed_up_at=now, trial_ends_at=now)
    made.set_password(PASSWORD)
    made.save()
    return made


@pytest.fixture
def orders(clock):
    """Orders with something ahead: three greetings, and a call that is due."""
    made = [Order.objects.create() for _ in range(3)]
    for order in made:
        emit("order.placed", order)
        clock.set(clock.now + timedelta(hours=1))
    schedule("care.call", made[0], at=clock.now - timedelta(minutes=30), payload={"about": "a broken lid"})
    return made
