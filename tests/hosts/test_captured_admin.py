"""
Django's own admin below a prefix that captures something, and below one that does not. Where Django's pages fail, ours do as
well: ``how-to/admin.md`` says so. If a later Django has answers there, so should we.
"""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import NoReverseMatch, set_script_prefix

from tests.people import log_in
from timeline.models import ref_of

pytestmark = pytest.mark.django_db

PAGES = ["", "login/", "auth/group/", "auth/group/add/", "password_change/", "jsi18n/", "logout/"]


@pytest.fixture
def root(user):
    user.is_staff = user.is_superuser = True
    user.set_unusable_password()
    user.save()
    return user


class TestBelowWhatIsCaptured:
    @pytest.mark.urls("tests.hosts.captured_admin")
    @pytest.mark.parametrize("page", PAGES)
    def test_no_page_of_djangos_own_takes_it(self, root, page):
        client = Client()
        log_in(client, root)

        with pytest.raises(TypeError, match="unexpected keyword argument 'tenant'"):
            client.get(f"/acme/admin/{page}")

    @pytest.mark.urls("tests.hosts.captured_admin")
    def test_no_link_of_djangos_own_keeps_it(self):
        """Who is sent to log in cannot be sent."""
        with pytest.raises(NoReverseMatch):
            Client().get("/acme/admin/")


class TestBelowAPrefixOfTheServers:
    """What is before the site is no part of its patterns: ``SCRIPT_NAME``, as WSGI calls it."""

    @pytest.fixture
    def client(self):
        set_script_prefix("/acme/")  # As Django's handlers do, but not that of tests.
        yield Client(SCRIPT_NAME="/acme")
        set_script_prefix("/")

    def test_all_links_keep_it(self, root, client, make_task):
        ref = ref_of(root)
        log_in(client, root)
        task = make_task(task_key="trial.remind", entity_label=ref.label, entity_id=ref.id)
        pages = ["", f"{task.pk}/change/", "entity/?" + f"label={ref.label}&id={ref.id}", "inventory/", "health/"]

        answers = [client.get(f"/admin/timeline/scheduledtask/{page}") for page in pages]

        assert [answer.status_code for answer in answers] == [200] * len(pages)
        links = {
            link for answer in answers for link in re.findall(r'(?:href|action)="(/[^"]*)"', answer.content.decode())
        }
        assert {link.split("/")[1] for link in links} <= {"acme", "static"}
        assert any(str(task.pk) in link for link in links)
