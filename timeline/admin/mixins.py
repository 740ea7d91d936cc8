"""``TimelineAdminMixin``: the way from an entity's own admin page to its timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin import ModelAdmin
from django.template.loader import select_template
from django.template.response import TemplateResponse

from timeline.admin.pages import Pages, policy_of
from timeline.admin.references import named
from timeline.admin.subject import concerned_with, sees
from timeline.models import ScheduledTask, ref_of

if TYPE_CHECKING:
    from django.db.models import Model
    from django.http import HttpRequest, HttpResponse

    Base = ModelAdmin[Model]
else:
    Base = ModelAdmin


class TimelineAdminMixin(Base):
    """
    Puts a button “Timeline” on the page of an entity, beside “History”: ``class UserAdmin(TimelineAdminMixin, ModelAdmin)``.

    Those see it who may see the timeline. A ``change_form_template`` of the class beneath keeps its place.
    """

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """Add the button, on top of whatever template the page has."""
        obj = options.get("obj") or (args[3] if len(args) > 3 else None)
        response = super().render_change_form(request, context, *args, **options)
        where = self._where(request, obj) if obj is not None else ""
        if where and isinstance(response, TemplateResponse):
            response.context_data = (response.context_data or {}) | {
                "timeline_url": where,
                "timeline_base": _template(response.template_name),
            }
            response.template_name = "admin/timeline/with_button.html"
        return response

    def _where(self, request: HttpRequest, obj: Model) -> str:
        ref, policy = ref_of(obj), policy_of(request)
        pages = self.admin_site._registry.get(ScheduledTask)
        if not isinstance(pages, Pages):  # An admin site that has none of ours.
            return ""
        if not any(
            sees(policy, request.user, name, ref, pages.alias) for name in concerned_with(ref, using=pages.alias)
        ):
            return ""
        return named(ref, obj, self.admin_site.name).where


def _template(name: Any) -> Any:
    return select_template([name] if isinstance(name, str) else name) if isinstance(name, str | list | tuple) else name
