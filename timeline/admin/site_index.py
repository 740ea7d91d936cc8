"""The index of the admin site: beside the tasks it lists *Needs attention*, there with how much that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.utils.translation import pgettext

from timeline.admin.bar import counts_kept, told
from timeline.admin.pages import Pages
from timeline.models import ScheduledTask
from timeline.reading.attention import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable


class IndexPages(Pages):
    """Adds an entry to the list of apps that the site makes, whoever has written that; its templates stay as they are."""

    def __init__(self, model: type[ScheduledTask], admin_site: AdminSite) -> None:
        super().__init__(model, admin_site)
        listed: Callable[..., list[Any]] = admin_site.get_app_list

        def with_attention(request: HttpRequest, *args: Any, **named: Any) -> list[Any]:
            apps = listed(request, *args, **named)
            is_registered = admin_site.is_registered(ScheduledTask)  # No more, or by another class, which adds its own.
            if is_registered and admin_site.get_model_admin(ScheduledTask) is self:
                self._add_to(apps, request)
            return apps

        admin_site.get_app_list = with_attention  # type: ignore[method-assign]

    def _add_to(self, apps: list[Any], request: HttpRequest) -> None:
        ours = [app for app in apps if app.get("app_label") == self.opts.app_label]
        if not ours or not request.user.has_perm("timeline.view_scheduledtask"):
            return
        name = pgettext("timeline", "Needs attention")
        if number := self._number(request):
            name = f"{name} ({number})"
        perms = {"add": False, "change": False, "delete": False, "view": True}
        entry = {"model": self.model, "name": name, "object_name": "Attention", "perms": perms}
        entry |= {"admin_url": self.address("attention"), "add_url": None, "view_only": True}
        ours[0]["models"].insert(0, entry)

    def _number(self, request: HttpRequest) -> str:
        """How much needs attention; it is counted where the index is shown, and not for the lists beside other pages."""
        shown = request.resolver_match
        if shown is None or shown.url_name not in ("index", "app_list"):
            return ""
        if counts_kept(request) is None:
            self.now_of(request)
        return told(Waiting.of(counts_kept(request) or {}).total)
