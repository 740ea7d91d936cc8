"""The log of deliveries in the admin: a list, and a page for each: what was sent, how it went, and what it tells of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import Truncator
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext, pgettext_lazy

from timeline.clocks import story_now
from timeline.exceptions import InvalidInput
from timeline.webhooks.admin_lists import FRAME, Alarming, asked_of_choices, asked_of_moment, asked_of_relation
from timeline.webhooks.disabling import replay
from timeline.webhooks.links import link_to, origin_of, telling_of
from timeline.webhooks.models import Attempt, Delivery, Endpoint, State
from timeline.webhooks.told import Body, Standing, formatted, standing_of_delivery, words_of_states

MAX_RECEIVER: Final = 48  # Characters, in the list.
MAX_ERROR: Final = 60
MOST_ATTEMPTS: Final = 100  # On the page of a delivery: more than it can have without being sent again many times.
MOST_OTHERS: Final = 20
LOOKED: Final = 100_000  # Deliveries that the list and its filters look through.


def badge(standing: Standing) -> str:
    """A word and why, for a list."""
    kind = f" tl-{standing.kind}" if standing.kind else ""
    word = format_html('<span class="tl-badge{}">{}</span>', kind, standing.word)
    return format_html('{} <span class="tl-quiet">{}</span>', word, standing.why) if standing.why else word


class StateFilter(admin.ChoicesFieldListFilter):
    """Calls states what the pages call them."""

    def choices(self, changelist: Any) -> Iterator[Any]:
        words = ["", *(words_of_states()[state] for state in State.values)]
        for choice, said in zip(super().choices(changelist), words, strict=False):
            yield {**choice, "display": said or choice["display"]}


class DeliveryList(ChangeList):
    """
    The latest deliveries, of all or of the endpoint that is asked for. Filters look through no more; ``looked``: so many, if
    there are others. What is done with deliveries looks through all: the page of an old one asks for it, too.
    """

    looked = 0

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Delivery]:
        found: QuerySet[Delivery] = super().get_queryset(request, exclude_parameters)
        if request.method not in ("GET", "HEAD"):
            return found
        endpoint = endpoint_asked(request)
        rows, column = self.root_queryset, "created_at" if endpoint else "pk"
        rows = rows.filter(endpoint=endpoint) if endpoint else rows
        last = list(rows.order_by(f"-{column}").values_list(column, flat=True)[LOOKED - 1 : LOOKED + 1])
        if len(last) < 2:
            return found
        self.looked = LOOKED
        return found.filter(**{f"{column}__gte": last[0]})


def endpoint_asked(request: HttpRequest) -> UUID | None:
    """The endpoint of whose deliveries the list is; None: of all."""
    try:
        return UUID(request.GET.get("endpoint__id__exact", ""))
    except ValueError:
        return None


@admin.register(Delivery)
class DeliveryAdmin(Alarming):
    """The log of deliveries: nothing in it is written by hand."""

    list_display = ("topic", "standing", "receiver", "about", "written")
    list_filter = (("state", StateFilter), "endpoint", "created_at")
    lookups: ClassVar = {
        **asked_of_choices("state", State.choices),
        **asked_of_relation("endpoint"),
        **asked_of_moment("created_at"),
    }
    list_select_related = ("endpoint",)
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    actions = ("send_again",)

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return DeliveryList

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """The latest first, each by an index."""
        return ("-created_at", "-pk") if endpoint_asked(request) else ("-pk",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show one: what was sent, each attempt in order, what it tells of, and to whom that was told as well."""
        if not self.has_view_permission(request) or request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        delivery: Delivery | None = self.get_object(request, unquote(object_id))
        if delivery is None:
            raise Http404(_("There is no such delivery."))
        using, site = self.get_queryset(request).db, self.admin_site.name
        others = telling_of([delivery.source], using=using).exclude(pk=delivery.pk).select_related("endpoint")
        attempts = list(Attempt.objects.using(using).filter(delivery=delivery).order_by("-id")[: MOST_ATTEMPTS + 1])
        sees_endpoint = any(request.user.has_perm(f"timeline_webhooks.{verb}_endpoint") for verb in ("view", "change"))
        may_send = self.has_send_again_permission(request) and delivery.state != State.WAITING and delivery.body
        context = {
            **self.admin_site.each_context(request),
            **self.with_bar(request),
            "title": delivery.topic,
            "opts": self.opts,
            "frame": FRAME,
            "delivery": delivery,
            "standing": standing_of_delivery(delivery),
            "origin": origin_of(delivery, request, self.admin_site, using=using),
            "endpoint_url": reverse(f"{site}:timeline_webhooks_endpoint_change", args=[delivery.endpoint_id])
            if sees_endpoint
            else "",
            "others": [link_to(each, site=site) for each in others.order_by("pk")[:MOST_OTHERS]],
            "body": formatted(delivery.body),
            "headers": _headers(delivery),
            "attempts": [(each, _answer(each)) for each in attempts[:MOST_ATTEMPTS][::-1]],
            "attempts_cut": MOST_ATTEMPTS if len(attempts) > MOST_ATTEMPTS else 0,
            "list": reverse(f"{site}:timeline_webhooks_delivery_changelist"),
            "may_send": may_send,
            **(extra_context or {}),
        }
        answer = TemplateResponse(request, "admin/timeline_webhooks/delivery.html", context)
        answer["Cache-Control"] = "no-store, private"
        return answer

    @admin.display(description=pgettext_lazy("timeline", "endpoint"), ordering="endpoint")
    def receiver(self, delivery: Delivery) -> str:
        """What its endpoint is called: an address may be long."""
        return Truncator(delivery.endpoint).chars(MAX_RECEIVER)

    @admin.display(description=pgettext_lazy("timeline", "entity"))
    def about(self, delivery: Delivery) -> str:
        if not delivery.entity_label:
            return pgettext("timeline", "the system")
        return f"{delivery.entity_label}:{delivery.entity_id}"

    @admin.display(description=pgettext_lazy("timeline", "state"), ordering="state")
    def standing(self, delivery: Delivery) -> str:
        """Where it is; after how many attempts, and what went wrong at the last one, if it has not arrived."""
        said = []
        if delivery.attempts > 1:
            attempts = ngettext("%(count)d attempt", "%(count)d attempts", delivery.attempts)
            said.append(attempts % {"count": delivery.attempts})
        if delivery.error and delivery.state != State.DELIVERED:
            said.append(Truncator(delivery.error).chars(MAX_ERROR))
        return badge(standing_of_delivery(delivery)._replace(why=" · ".join(said)))

    @admin.display(description=pgettext_lazy("timeline", "written"), ordering="created_at")
    def written(self, delivery: Delivery) -> str:
        return f"{localtime(delivery.created_at):%Y-%m-%d %H:%M}"

    def has_send_again_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("timeline_webhooks.change_endpoint")

    @admin.action(description=gettext_lazy("Send the selected deliveries again"), permissions=["send_again"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        """Send what has ended again, with the same id."""
        if not self.has_send_again_permission(request):
            raise PermissionDenied
        using, sent = queryset.db, 0
        for endpoint in Endpoint.objects.using(using).filter(pk__in=queryset.order_by().values("endpoint")):
            chosen = queryset.order_by().filter(endpoint=endpoint).values_list("pk", flat=True)
            try:
                sent += replay(endpoint, only=chosen, now=story_now(using), using=using)
            except InvalidInput as problem:
                self.message_user(request, str(problem), messages.ERROR)
        said = ngettext("%(count)d delivery is sent again.", "%(count)d deliveries are sent again.", sent)
        self.message_user(request, said % {"count": sent})


def _headers(delivery: Delivery) -> list[tuple[str, str]]:
    """What is sent with the body. Signatures are made at each attempt, and kept nowhere."""
    return [
        ("content-type", "application/json"),
        ("webhook-id", delivery.message_id),
        ("webhook-timestamp", _("the time of the attempt, in seconds since 1970")),
        ("webhook-signature", _("made for each attempt with the secret of the endpoint")),
    ]


def _answer(attempt: Attempt) -> Body:
    return formatted(attempt.answer)
