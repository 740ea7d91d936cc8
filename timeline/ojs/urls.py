"""
Addresses, to be included at the root: ``path("ojs/", include("timeline.ojs.urls"))``. The specification wants them there. What
else is asked for below is answered as it wants, too.
"""

from __future__ import annotations

from django.urls import path, re_path

from timeline.ojs.answers import nothing
from timeline.ojs.routes import VIEWS

urlpatterns = [*(path(address, answer) for address, answer in VIEWS.items()), re_path("", nothing)]
