"""The addresses of bookings."""

from __future__ import annotations

from django.urls import path

from project.portal import views

urlpatterns = [
    path("", views.apply, name="apply"),
    path("desk/", views.desk, name="booking-desk"),
    path("desk/<int:pk>/<str:what>/", views.resolve, name="resolve-booking"),
    path("<str:token>/", views.booking, name="booking"),
    path("<str:token>/<str:what>/", views.act, name="act-on-booking"),
]
