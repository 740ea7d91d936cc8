"""Routes of the API; a host includes them: ``path("api/v1/", include("timeline.api.urls"))``."""

from __future__ import annotations

from typing import Final

from django.apps import apps
from django.urls import URLPattern, path, re_path, register_converter
from django.urls.converters import StringConverter
from django.utils.module_loading import import_string

from timeline.api.base import NothingHere
from timeline.api.dead_letters import DeadLetterGroups, RedriveGroup
from timeline.api.documents import DocsView, SchemaView
from timeline.api.events import Events
from timeline.api.tasks import TaskViewSet
from timeline.api.timelines import EntityTasks, MyTasks, UserTasks
from timeline.hooks import of_features

app_name = "timeline_api"

# What is done with one task: methods of its views.
VERBS: Final = ("cancel", "move", "run_now", "redrive", "step_happened", "forget_step", "go_on", "approve", "reject")


class KeyConverter(StringConverter):
    """A key of an entity, which may have slashes: whatever stands before the rest of the address."""

    regex = r"[\s\S]+"


register_converter(KeyConverter, "timeline_key")


def routes(using: str = "") -> list[URLPattern]:
    """
    Make the addresses of an API for the tasks of a database; empty: the site's routers say.

    A second API needs a namespace of its own: ``include((routes("other"), "timeline_api"), namespace="other")``.
    """
    return [
        path("tasks/", TaskViewSet.as_view({"get": "list"}, using=using), name="task-list"),
        path("tasks/<uuid:pk>/", TaskViewSet.as_view({"get": "retrieve"}, using=using), name="task-detail"),
        *(
            path(f"tasks/<uuid:pk>/{named}/", TaskViewSet.as_view({"post": verb}, using=using), name=f"task-{named}")
            for verb in VERBS
            for named in [verb.replace("_", "-")]
        ),
        path("dead-letters/", DeadLetterGroups.as_view(using=using), name="dead-letters"),
        path(
            "dead-letters/<timeline_key:group>/redrive/", RedriveGroup.as_view(using=using), name="dead-letters-redrive"
        ),
        path("me/tasks/", MyTasks.as_view(using=using), name="my-tasks"),
        path("users/<timeline_key:id>/tasks/", UserTasks.as_view(using=using), name="user-tasks"),
        path("entities/<str:label>/<timeline_key:id>/tasks/", EntityTasks.as_view(using=using), name="entity-tasks"),
        path("events/", Events.as_view(using=using), name="events"),
        *(
            path(where, view.as_view(using=using), name=name)
            for some in of_features("api", "ROUTES")
            for where, view, name in some
        ),
        *_routes_of_apps(using),
        path("schema/", SchemaView.as_view(using=using), name="schema"),
        path("docs/", DocsView.as_view(), name="docs"),
        re_path(r"^(?:[\s\S]*/)?$", NothingHere.as_view(), name="nothing-here"),
    ]


def _routes_of_apps(using: str) -> list[URLPattern]:
    """Make the addresses of apps of the package that stand above this one: ``api_routes`` of their configuration names them."""
    named = [getattr(config, "api_routes", None) for config in apps.get_app_configs() if _is_ours(config.name)]
    return [route for name in named if name for route in import_string(name)(using)]


def _is_ours(name: str) -> bool:
    return name.startswith("timeline.")


urlpatterns = routes()
