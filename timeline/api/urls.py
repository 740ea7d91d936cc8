"""Routes of the API; a host includes them: ``path("api/v1/", include("timeline.api.urls"))``."""

from __future__ import annotations

from django.urls import path, re_path

from timeline.api.base import NothingHere
from timeline.api.documents import DocsView, SchemaView
from timeline.api.events import Events
from timeline.api.tasks import TaskViewSet
from timeline.api.timelines import EntityTasks, MyTasks, UserTasks

app_name = "timeline_api"

urlpatterns = [
    path("tasks/", TaskViewSet.as_view({"get": "list"}), name="task-list"),
    path("tasks/<uuid:pk>/", TaskViewSet.as_view({"get": "retrieve"}), name="task-detail"),
    path("tasks/<uuid:pk>/cancel/", TaskViewSet.as_view({"post": "cancel"}), name="task-cancel"),
    path("tasks/<uuid:pk>/move/", TaskViewSet.as_view({"post": "move"}), name="task-move"),
    path("tasks/<uuid:pk>/run-now/", TaskViewSet.as_view({"post": "run_now"}), name="task-run-now"),
    path("tasks/<uuid:pk>/redrive/", TaskViewSet.as_view({"post": "redrive"}), name="task-redrive"),
    path("me/tasks/", MyTasks.as_view(), name="my-tasks"),
    path("users/<str:id>/tasks/", UserTasks.as_view(), name="user-tasks"),
    path("entities/<str:label>/<str:id>/tasks/", EntityTasks.as_view(), name="entity-tasks"),
    path("events/", Events.as_view(), name="events"),
    path("schema/", SchemaView.as_view(), name="schema"),
    path("docs/", DocsView.as_view(), name="docs"),
    re_path(r"^(?:[\s\S]*/)?$", NothingHere.as_view(), name="nothing-here"),
]
