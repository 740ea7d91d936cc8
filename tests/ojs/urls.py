"""Addresses of a site that serves the Open Job Specification and nothing else."""

from django.urls import include, path

urlpatterns = [path("ojs/", include("timeline.ojs.urls"))]
