"""The pages of the site."""

from __future__ import annotations

from django.apps import apps
from django.contrib import admin
from django.urls import include, path
from django.views.i18n import set_language

from project.accounts import views
from project.demo import views as demo
from timeline.views import health

urlpatterns = [
    path("admin/", admin.site.urls),
    path("language/", set_language, name="set-language"),
    path("", views.sign_up, name="sign-up"),
    path("my/<str:token>/", views.my_timeline, name="my-timeline"),
    path("my/<str:token>/pay/", views.configure_payment, name="configure-payment"),
    path("my/<str:token>/extend/", views.extend_trial, name="extend-trial"),
    path("my/<str:token>/close/", views.close_trial, name="close-trial"),
    path("calendar/<str:token>.ics", views.Calendar.as_view(), name="my-calendar"),
    path("script/<str:token>/", views.script_call, name="script-call"),
    path("appointments/", include("project.portal.urls")),
    path("api/v1/", include("timeline.api.urls")),
    path("health/", health, name="health"),
    path("demo/", demo.demo, name="demo"),
    path("demo/<str:button>/", demo.press, name="demo-press"),
]
if apps.is_installed("timeline.ojs"):
    urlpatterns += [path("ojs/", include("timeline.ojs.urls"))]
