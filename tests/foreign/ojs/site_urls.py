"""The addresses of the specification."""

from django.urls import include, path

urlpatterns = [path("ojs/", include("timeline.ojs.urls"))]
