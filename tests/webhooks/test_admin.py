"""Endpoints and deliveries in the admin, and the command that sends a sample."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.contrib.messages import get_messages
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.webhooks.test_sending import deliver, told_order
from timeline.webhooks.disabling import disable, enable
from timeline.webhooks.models import Attempt, Delivery, Disabled, Endpoint
from timeline.webhooks.secrets import decrypted


@pytest.fixture
def admin_client(client, django_user_model, clock):
    """Somebody who may do everything."""
    columns = {
        "email": "root@example.com",
        "website": "r.example",
        "signed_up_at": clock.now,
        "trial_ends_at": clock.now,
    }
    client.force_login(django_user_model.objects.create(is_staff=True, is_superuser=True, **columns))
    return client


@pytest.fixture
def person_of_staff(django_user_model, clock):
    """Somebody who may log in, and nothing else."""
    return django_user_model.objects.create(
        email="pia@example.com", is_staff=True, signed_up_at=clock.now, trial_ends_at=clock.now
    )


ADD = "admin:timeline_webhooks_endpoint_add"


def given(url, topics):
    return {"url": url, "description": "Books", "topics": topics, "ordered": "entity"}


class TestAnEndpoint:
    def test_is_made_and_its_secret_is_shown_once(self, admin_client, clock, receiver):
        answer = admin_client.post(reverse(ADD), given(receiver.url, ["told"]))

        [endpoint] = Endpoint.objects.all()
        secret = decrypted(endpoint.secret)
        assert secret in answer.content.decode()
        assert not list(get_messages(answer.wsgi_request))
        change = reverse("admin:timeline_webhooks_endpoint_change", args=[endpoint.pk])
        for page in (change, reverse("admin:timeline_webhooks_endpoint_changelist")):
            shown = admin_client.get(page).content.decode()
            assert secret not in shown
            assert endpoint.secret not in shown

    @pytest.mark.parametrize(
        ("url", "topics"), [("https://10.0.0.1/", ["told"]), ("https://receiver.example.com/", ["tolt"])]
    )
    def test_is_refused_if_it_may_not_be(self, url, topics, admin_client, clock):
        answer = admin_client.post(reverse(ADD), given(url, topics))

        assert answer.status_code == 200
        assert "errorlist" in answer.content.decode()
        assert not Endpoint.objects.exists()

    def test_tells_nothing_yet_of_a_new_one(self, admin_client):
        """No dashes for when it failed or was disabled."""
        page = admin_client.get(reverse(ADD)).content.decode()

        assert "readonly" not in page
        assert "Times are those of" not in page

    def test_is_nobodys_who_has_no_right(self, client, django_user_model, clock):
        user = django_user_model.objects.create(
            email="s@example.com", website="s.example", signed_up_at=clock.now, trial_ends_at=clock.now
        )
        client.force_login(user)

        assert client.post(reverse(ADD), given("https://receiver.example.com/", ["told"])).status_code == 302
        assert not Endpoint.objects.exists()

    def test_is_deleted_with_its_deliveries_by_who_may_delete_it(
        self, admin_client, client, django_user_model, endpoint_for, receiver, clock
    ):
        endpoint = endpoint_for("told")
        told_order("told.asked")
        deliver()
        page = reverse("admin:timeline_webhooks_endpoint_delete", args=[endpoint.pk])
        asked = admin_client.get(page).content.decode()
        assert "Deliveries: 1" in asked
        assert "doesn" not in asked  # … not have permission to delete them.

        for right, is_there in (("change_endpoint", True), ("delete_endpoint", False)):
            user = django_user_model.objects.create(
                email=f"{right}@example.com", signed_up_at=clock.now, trial_ends_at=clock.now, is_staff=True
            )
            user.user_permissions.add(Permission.objects.get(codename=right))
            client.force_login(user)
            client.post(page, {"post": "yes"})
            assert Endpoint.objects.exists() is is_there

        assert not Delivery.objects.exists()


class TestAURL:
    @pytest.fixture
    def endpoint(self, endpoint_for):
        """One without a description, in whose URL a secret is; something was sent to it."""
        endpoint = endpoint_for("told")
        endpoint_for("told")  # The list of deliveries chooses between two.
        told_order("told.asked")
        Endpoint.objects.update(url="https://books.example.com/s3cret?key=s3cret")
        return endpoint

    @pytest.mark.parametrize("rights", [("view_delivery",), ("view_endpoint",), ("view_endpoint", "delete_endpoint")])
    def test_is_shown_by_no_page_to_who_may_not_change_it(self, rights, client, endpoint, person_of_staff):
        person_of_staff.user_permissions.set(Permission.objects.filter(codename__in=rights))
        client.force_login(person_of_staff)
        rows = {"endpoint": endpoint, "delivery": endpoint.deliveries.get()}
        pages = [reverse(f"admin:timeline_webhooks_{kind}_changelist") for kind in rows]
        pages += [
            reverse(f"admin:timeline_webhooks_{kind}_{page}", args=[row.pk])
            for kind, row in rows.items()
            for page in ("change", "delete", "history")
        ]

        said = "".join(client.get(page).content.decode() for page in pages)

        assert "s3cret" not in said
        assert f"books.example.com #{endpoint.pk.hex[-6:]}" in said

    def test_is_on_the_page_of_who_may_change_it(self, admin_client, endpoint):
        page = admin_client.get(reverse("admin:timeline_webhooks_endpoint_change", args=[endpoint.pk]))

        assert "https://books.example.com/s3cret?key=s3cret" in page.content.decode()

    def test_is_kept_by_no_log_of_the_admin(self, admin_client, clock):
        admin_client.post(reverse(ADD), given("https://books.example.com/s3cret", ["told"]) | {"description": ""})

        assert Endpoint.objects.exists()
        assert "s3cret" not in str(list(LogEntry.objects.values_list("object_repr", "change_message")))

    def test_that_cannot_be_read_is_shown_as_none(self, endpoint):
        endpoint.url = "https://[s3cret/"

        assert str(endpoint).startswith("? #")


class TestWhatIsNoneOfThem:
    @pytest.mark.parametrize("key", ["x", "", "\x00", "7:8", "9" * 5_000, str(10**40)])
    @pytest.mark.parametrize(("kind", "action"), [("endpoint", "rotate_secret"), ("delivery", "send_again")])
    def test_is_not_looked_for_when_it_is_selected(self, kind, action, key, admin_client, endpoint_for):
        secret = endpoint_for("told").secret
        where = reverse(f"admin:timeline_webhooks_{kind}_changelist")

        answer = admin_client.post(where, {"action": action, "_selected_action": [key]}, follow=True)

        assert answer.redirect_chain == [(where, 302)]
        assert "Nothing was changed: one of those selected is not here." in answer.content.decode()
        assert Endpoint.objects.get().secret == secret

    @pytest.mark.parametrize("page", ["change", "delete", "history", "replay"])
    def test_looks_like_one_that_is_there_to_who_may_see_none(self, page, client, endpoint_for, person_of_staff):
        client.force_login(person_of_staff)

        answers = [
            client.get(reverse(f"admin:timeline_webhooks_endpoint_{page}", args=[key]))
            for key in (endpoint_for("told").pk, uuid4())
        ]

        assert [answer.status_code for answer in answers] == [403, 403]
        assert answers[0].content == answers[1].content

    @pytest.mark.parametrize("topic", ["[" * 20_000, '["\\ud800"]', "9" * 5_000, "tolt", '["told"]'])
    def test_is_no_topic_and_that_is_said_by_the_field(self, topic, admin_client, clock):
        answer = admin_client.post(reverse(ADD), given("https://receiver.example.com/", [topic]))

        [said] = answer.context["adminform"].errors["topics"]
        assert "is nothing that is told. There are: told" in said
        assert list(answer.context["adminform"].errors) == ["topics"]
        assert not Endpoint.objects.exists()


class TestToDeleteAnEndpoint:
    @pytest.fixture
    def endpoint(self, endpoint_for, clock):
        """One that was told of an order."""
        endpoint = endpoint_for("told")
        told_order("told.asked")
        deliver()
        return endpoint

    def page_of(self, endpoint):
        return reverse("admin:timeline_webhooks_endpoint_delete", args=[endpoint.pk])

    def test_says_how_much_goes_with_it_and_reads_no_more_for_more(self, admin_client, endpoint, monkeypatch):
        def look():
            with CaptureQueriesContext(connection) as queries:
                answer = admin_client.get(self.page_of(endpoint))
            return dict(answer.context["model_count"]), len(queries)

        before, asked = look()
        for _number in range(4):
            told_order("told.asked")
        deliver()
        after, asked_then = look()
        monkeypatch.setattr("timeline.webhooks.disabling.MAX_COUNTED", 3)
        monkeypatch.setattr("timeline.webhooks.admin.MAX_COUNTED", 3)

        assert before == {"endpoints": "1", "deliveries": "1"}
        assert after == {"endpoints": "1", "deliveries": "5"}
        assert asked == asked_then
        assert look()[0] == {"endpoints": "1", "deliveries": "3+"}

    def test_is_for_whoever_may_and_takes_all_with_it(self, admin_client, endpoint):
        answer = admin_client.post(self.page_of(endpoint), {"post": "yes"})

        assert answer.status_code == 302
        assert (Endpoint.objects.count(), Delivery.objects.count(), Attempt.objects.count()) == (0, 0, 0)

    def test_is_for_nobody_else(self, client, endpoint, django_user_model, clock):
        user = django_user_model.objects.create(
            email="s@example.com", website="s.example", signed_up_at=clock.now, trial_ends_at=clock.now, is_staff=True
        )
        user.user_permissions.set(Permission.objects.filter(codename__in=["view_endpoint", "change_endpoint"]))
        client.force_login(user)

        assert client.get(self.page_of(endpoint)).status_code == 403
        assert client.post(self.page_of(endpoint), {"post": "yes"}).status_code == 403
        assert Endpoint.objects.exists()


class TestADelivery:
    def test_is_shown_with_what_was_answered_and_sent_again(self, admin_client, endpoint_for, receiver, clock):
        endpoint_for("told")
        receiver.answer = lambda _request: (200, b"<script>alert(1)</script>")
        told_order("told.asked")
        deliver()
        [delivery] = Delivery.objects.all()

        page = admin_client.get(reverse("admin:timeline_webhooks_delivery_change", args=[delivery.pk])).content.decode()
        assert "&lt;script&gt;alert(1)" in page
        chosen = {"action": "send_again", "_selected_action": [delivery.pk]}
        admin_client.post(reverse("admin:timeline_webhooks_delivery_changelist"), chosen)
        deliver()
        assert [request.id for request in receiver.requests] == [delivery.message_id] * 2

    def test_about_nobody_is_of_the_system(self, admin_client, endpoint_for):
        endpoint_for("told")
        told_order("told.asked")
        Delivery.objects.update(entity_label="", entity_id="")

        page = admin_client.get(reverse("admin:timeline_webhooks_delivery_changelist")).content.decode()

        assert '<td class="field-about">the system</td>' in page

    def test_goes_with_its_log_when_it_is_old(self, endpoint_for, clock, settings):
        settings.TIMELINE = {"RETENTION": timedelta(days=30)}
        endpoint_for("told")
        told_order("told.asked")
        deliver()
        clock.advance(days=29)
        deliver()
        assert Delivery.objects.count() == 1

        clock.advance(days=2)
        deliver()

        assert (Delivery.objects.count(), Attempt.objects.count()) == (0, 0)


class TestWhatWasOfATime:
    @pytest.fixture
    def missed(self, endpoint_for, receiver, clock):
        """One that arrived, and, an hour later, one that was cancelled; the endpoint is enabled again."""
        endpoint = endpoint_for("told")
        told_order("told.asked")
        deliver()
        clock.advance(hours=1)
        told_order("told.asked")
        disable(endpoint, Disabled.OPERATOR, now=clock.now, using="default")
        enable(endpoint, now=clock.now, using="default")
        receiver.reset()
        clock.advance(hours=1)
        return endpoint

    def at(self, clock, hours):
        return (clock.now + timedelta(hours=hours)).isoformat()

    @pytest.mark.parametrize(
        ("since", "which", "count"), [(-3, "missed", 1), (-3, "all", 2), (-1.5, "all", 1), (-0.5, "all", 0)]
    )
    def test_is_counted_and_once_confirmed_sent_again(self, since, which, count, admin_client, missed, clock, receiver):
        page = reverse("admin:timeline_webhooks_endpoint_replay", args=[missed.pk])
        given = {"since": self.at(clock, since), "which": which, "until": ""}
        change = admin_client.get(reverse("admin:timeline_webhooks_endpoint_change", args=[missed.pk]))
        assert page in change.content.decode()
        assert admin_client.get(page).status_code == 200

        asked = admin_client.post(page, given)
        assert asked.context["counted"] == count
        assert not Delivery.objects.waiting().exists()
        until = asked.context["chosen"]["until"].isoformat()
        done = admin_client.post(page, {**given, "until": until, "confirmed": "1"})
        deliver()

        assert done.status_code == 302
        assert len(receiver.requests) == count
        assert LogEntry.objects.latest("pk").object_id == str(missed.pk)

    @pytest.mark.parametrize(
        "given",
        [
            {},
            {"since": "x", "which": "all"},
            {"since": "0001-01-01T00:00", "which": "all"},
            {"since": "2001-01-01T00:00", "until": "9999-12-31T23:59-11:00", "which": "all"},
            {"since": "2001-01-02T00:00", "until": "2001-01-01T00:00", "which": "all"},
            {"since": "2001-01-01T00:00", "which": "waiting"},
        ],
    )
    def test_is_asked_anew_if_it_is_none(self, given, admin_client, missed):
        page = reverse("admin:timeline_webhooks_endpoint_replay", args=[missed.pk])

        answer = admin_client.post(page, {**given, "confirmed": "1"})

        assert answer.status_code == 200
        assert "Please correct this:" in answer.content.decode()
        assert 'class="tl-error"' in answer.content.decode()
        assert not Delivery.objects.waiting().exists()

    def test_is_not_sent_to_one_that_is_disabled(self, admin_client, missed, clock):
        disable(missed, Disabled.OPERATOR, now=clock.now, using="default")
        page = reverse("admin:timeline_webhooks_endpoint_replay", args=[missed.pk])

        answer = admin_client.post(page, {"since": self.at(clock, -3), "which": "all", "confirmed": "1"}, follow=True)

        assert "Enable it first." in answer.content.decode()
        assert not Delivery.objects.waiting().exists()

    def test_is_for_who_may_change_endpoints(self, client, django_user_model, missed, clock):
        user = django_user_model.objects.create(
            email="v@example.com", website="v.example", signed_up_at=clock.now, trial_ends_at=clock.now, is_staff=True
        )
        user.user_permissions.add(Permission.objects.get(codename="view_endpoint"))
        client.force_login(user)
        given = {"since": self.at(clock, -3), "which": "all", "confirmed": "1"}

        answers = [
            client.post(reverse("admin:timeline_webhooks_endpoint_replay", args=[key]), given).status_code
            for key in (missed.pk, "no", "01a211dd-2499-712d-854c-e3fcd74882b2")
        ]

        assert answers == [403] * 3
        assert not Delivery.objects.waiting().exists()


class TestTheSample:
    def test_is_signed_and_its_answer_is_printed(self, endpoint_for, receiver):
        endpoint, out = endpoint_for("told"), StringIO()
        receiver.answer = lambda _request: (200, b"taken")

        call_command("timeline_webhook_test", str(endpoint.pk), stdout=out)

        [request] = receiver.requests
        assert request.verified_by(endpoint.shown)["type"] == "webhook.test"
        assert out.getvalue().startswith("200, ")
        assert "taken" in out.getvalue()
        assert not Delivery.objects.exists()

    @pytest.mark.parametrize("name", ["", "no", "01a211dd-2499-712d-854c-e3fcd74882b2"])
    def test_needs_an_endpoint(self, name, db):
        with pytest.raises(CommandError, match="endpoint: there is none"):
            call_command("timeline_webhook_test", name)
