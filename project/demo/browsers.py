"""How the demo's people use the site: through its own pages and forms, as a browser would, CSRF token and all."""

from __future__ import annotations

import re
from http.cookiejar import CookieJar
from typing import NamedTuple, Protocol
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, HTTPRedirectHandler, Request, build_opener

from django.test import Client

from project.demo.people import Action, Person

_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
_SCRIPT = re.compile(r"sendBeacon\(&quot;[^&]*?(/script/[^&]+?)&quot;\)|sendBeacon\(\"[^\"]*?(/script/[^\"]+?)\"\)")
_PATHS: dict[Action, str] = {"pay": "pay/", "extend": "extend/", "close": "close/"}


class Page(NamedTuple):
    """What the site answered: status, where it sends us (empty: nowhere), and the text."""

    status: int
    location: str
    text: str


class Browser(Protocol):
    """Asks the site for pages and posts its forms."""

    def get(self, path: str) -> Page:
        """Open a page."""

    def post(self, path: str, data: dict[str, str]) -> Page:
        """Send a form; redirects are not followed."""


class Visit:
    """
    One person at the site.

    Args:
        person: Who.
        browser: With cookies of its own.
        home: Path of “my timeline”, of somebody who has signed up.
    """

    def __init__(self, person: Person, browser: Browser, *, home: str = "") -> None:
        self.person = person
        self.browser = browser
        self.home = home

    def sign_up(self) -> str:
        """
        Fill in the form on the front page.

        Returns:
            What was sent and answered, in one line.
        """
        data = {"email": self.person.email, "website": self.person.website}
        answer = self._submit("/", "/", data)
        self.home = answer.location
        if answer.status != 302 or not self.home:
            raise RuntimeError(f"Signing up {self.person.email} was answered with status {answer.status}.")
        return f"POST /  email={self.person.email} website={self.person.website}  → {answer.status} {self.home}"

    def do(self, action: Action) -> None:
        """Press a button on “my timeline”, or let the script on the website call."""
        if action == "call":
            path = _SCRIPT.search(self.browser.get(self.home).text)
            if path is not None:
                self.browser.post(path.group(1) or path.group(2), {})
        else:
            self._submit(self.home, f"{self.home}{_PATHS[action]}", {})

    def _submit(self, page: str, target: str, data: dict[str, str]) -> Page:
        token = _TOKEN.search(self.browser.get(page).text)
        return self.browser.post(target, {**data, "csrfmiddlewaretoken": token.group(1) if token else ""})


class HttpBrowser:
    """
    Over HTTP, to a site that runs.

    Args:
        base: Its address, ``http://127.0.0.1:8000``.
    """

    def __init__(self, base: str) -> None:
        self.base = base
        self._opener = build_opener(HTTPCookieProcessor(CookieJar()), _NoRedirect())

    def get(self, path: str) -> Page:
        """Open a page."""
        return self._open(Request(self.base + path))  # noqa: S310 (the demo's own site)

    def post(self, path: str, data: dict[str, str]) -> Page:
        """Send a form."""
        return self._open(Request(self.base + path, data=urlencode(data).encode()))  # noqa: S310

    def _open(self, request: Request) -> Page:
        try:
            with self._opener.open(request, timeout=120) as answer:
                return Page(answer.status, answer.headers.get("Location", ""), answer.read().decode())
        except HTTPError as error:
            with error:
                return Page(error.code, error.headers.get("Location", ""), error.read().decode())


class _NoRedirect(HTTPRedirectHandler):
    """Shows a redirect instead of following it."""

    def redirect_request(self, *_args: object) -> None:
        """Follow nothing."""


class InProcessBrowser:
    """Through the site's whole request path, without a server."""

    def __init__(self) -> None:
        self._client = Client(enforce_csrf_checks=True)

    def get(self, path: str) -> Page:
        """Open a page."""
        answer = self._client.get(path)
        return Page(answer.status_code, answer.headers.get("Location", ""), answer.content.decode())

    def post(self, path: str, data: dict[str, str]) -> Page:
        """Send a form."""
        answer = self._client.post(path, data)
        return Page(answer.status_code, answer.headers.get("Location", ""), answer.content.decode())
