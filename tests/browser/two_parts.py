"""A page of a host with two live parts."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template import RequestContext, Template
from django.urls import path

from tests.testapp.models import Order
from timeline.live import live_page
from timeline.models import ScheduledTask

_PAGE = Template(
    '{% load timeline_live %}<!doctype html><html lang="en"><title>Parts</title><body>'
    "{% live %}<p id='ahead'>ahead: {{ ahead }}</p>{% endlive %}"
    "{% if ahead != 1 %}{% live %}<p id='over'>over: {{ over }}</p>{% endlive %}{% endif %}</body></html>"
)


@live_page(lambda _request, pk: get_object_or_404(Order, pk=pk))
def page(request: HttpRequest, pk: int) -> HttpResponse:
    tasks = ScheduledTask.objects.for_entity(get_object_or_404(Order, pk=pk))
    told = {"ahead": tasks.open().count(), "over": tasks.final().count()}
    return HttpResponse(_PAGE.render(RequestContext(request, told)))


urlpatterns = [path("parts/<int:pk>/", page)]
