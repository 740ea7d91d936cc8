"""The entry on the admin's own index: how much needs attention, for who may see that."""

from __future__ import annotations

import pytest
from django.contrib.admin import AdminSite, site
from django.test import RequestFactory
from django.urls import reverse

from tests.admin.conftest import ALL, LIST, text_of
from timeline.admin import TaskAdmin
from timeline.lifecycle import State
from timeline.models import ScheduledTask

INDEX = reverse("admin:index")
ATTENTION = reverse("admin:timeline_scheduledtask_attention")


@pytest.fixture
def dead(about, order):
    return [about(order, state=State.DISCARDED, fingerprint=mark * 16) for mark in "12"]


class TestIndex:
    def test_says_how_much_needs_attention_and_leads_there(self, operator, dead):
        page = text_of(operator.get(INDEX))

        assert f'href="{ATTENTION}"' in page
        assert "Needs attention (2)" in page
        assert "Needs attention (2)" in text_of(operator.get(reverse("admin:app_list", args=["timeline"])))

    def test_says_no_number_where_nothing_does(self, operator):
        page = text_of(operator.get(INDEX))

        assert "Needs attention" in page
        assert "Needs attention (" not in page

    def test_counts_nothing_beside_other_pages(self, operator, dead):
        assert "Needs attention (2)" not in text_of(operator.get(LIST))

    def test_counts_once(self, operator, dead, django_assert_max_num_queries):
        with django_assert_max_num_queries(6):
            operator.get(INDEX)

    def test_is_for_who_may_see_all_tasks(self, browse, person, about):
        owner = person("owner", is_staff=True)
        about(owner, task_key="account.welcome")

        page = text_of(browse(owner).get(INDEX))

        assert "Upcoming events" in page
        assert "Needs attention" not in page
        assert "Needs attention" not in text_of(browse(person("other", is_staff=True)).get(INDEX))


class Hosts(AdminSite):
    """A host's own list, which puts something first."""

    def get_app_list(self, request, app_label=None):
        return [{"app_label": "own", "models": []}, *super().get_app_list(request, app_label)]


class Theirs(TaskAdmin):
    """Registered instead of ours."""


class TestHostsOwnList:
    def listed(self, hosts, user):
        request = RequestFactory().get("/")
        request.user, request.resolver_match = user, None
        return {
            app["app_label"]: [each["object_name"] for each in app["models"]] for app in hosts.get_app_list(request)
        }

    def test_is_added_to(self, settings, person):
        settings.ROOT_URLCONF = "tests.admin.second_site"
        hosts = Hosts("second")
        hosts.register(ScheduledTask, TaskAdmin)

        assert self.listed(hosts, person("eva", *ALL)) == {"own": [], "timeline": ["Attention", "ScheduledTask"]}

    def test_has_it_once_where_another_class_was_registered_instead(self, settings, person):
        settings.ROOT_URLCONF = "tests.admin.second_site"
        hosts, eva = Hosts("second"), person("eva", *ALL)
        hosts.register(ScheduledTask, TaskAdmin)
        hosts.unregister(ScheduledTask)

        assert self.listed(hosts, eva) == {"own": []}
        hosts.register(ScheduledTask, Theirs)
        assert self.listed(hosts, eva)["timeline"] == ["Attention", "ScheduledTask"]

    def test_of_djangos_site_is_as_long_as_it_was(self, person):
        assert self.listed(site, person("eva", *ALL))["timeline"].count("Attention") == 1
