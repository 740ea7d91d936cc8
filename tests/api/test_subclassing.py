"""What a host may change: fields, filters, rates, another site's permission classes."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.urls import include, path
from django_filters import rest_framework as filters

from tests.api.test_tasks import problem
from timeline.api.filters import TaskFilters
from timeline.api.serializers import TaskSerializer
from timeline.api.tasks import TaskViewSet


class TaskWithWorker(TaskSerializer):
    class Meta(TaskSerializer.Meta):
        fields = [*TaskSerializer.Meta.fields, "worker"]


class FiltersByQueue(TaskFilters):
    queue = filters.CharFilter()


class Tasks(TaskViewSet):
    serializer_class = TaskWithWorker
    filterset_class = FiltersByQueue


urlpatterns = [
    path("api/v1/tasks/", Tasks.as_view({"get": "list"})),
    path("api/v1/", include("timeline.api.urls")),
]


@pytest.fixture
def _own_urls(settings):
    settings.ROOT_URLCONF = __name__


@pytest.mark.usefixtures("_own_urls")
class TestSubclasses:
    def test_show_and_ask_more(self, by_staff, ada, about):
        about("account.greet", ada, worker="w1", queue="slow")
        about("account.greet", ada)

        [shown] = by_staff.get("tasks/", queue="slow").json()["results"]

        assert shown["worker"] == "w1"

    def test_show_no_more_rows_than_before(self, asked_by, ada, person, about):
        about("account.greet", person("ben"), queue="slow")

        assert asked_by(ada).get("tasks/", queue="slow").json()["results"] == []


class TestRates:
    @pytest.fixture(autouse=True)
    def _rates(self, settings):
        settings.REST_FRAMEWORK = {
            **settings.REST_FRAMEWORK,
            "DEFAULT_THROTTLE_RATES": {"timeline.read": "2/min", "timeline.write": "1/min"},
        }
        cache.clear()
        yield
        cache.clear()

    def test_are_counted_apart_for_reading_and_writing(self, by_staff, ada, about, clock):
        row = about("account.greet", ada)

        assert [by_staff.get("tasks/").status_code for _ in range(2)] == [200, 200]
        refused = by_staff.get("me/tasks/")
        assert by_staff.post(f"tasks/{row.pk}/cancel/", {"reason": "x"}).status_code == 200

        problem(refused, 429)
        assert int(refused.headers["Retry-After"]) > 0
        problem(by_staff.post(f"tasks/{row.pk}/redrive/", {"reason": "x"}), 429)


class TestNoRates:
    def test_limit_nothing(self, by_staff):
        assert {by_staff.get("tasks/").status_code for _ in range(30)} == {200}
