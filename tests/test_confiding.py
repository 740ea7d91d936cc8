"""No secrets in payloads: names that look like one are refused, with what to do instead."""

from __future__ import annotations

import pytest

from tests.testapp.models import Order
from timeline.exceptions import InvalidInput
from timeline.models import Event
from timeline.payloads import check_data, is_secret
from timeline.shortcuts import emit, emit_many, schedule


class TestNames:
    @pytest.mark.parametrize(
        "name",
        [
            "otp",
            "OTP",
            "password",
            "user_password",
            "accessToken",
            "access-token",
            "client.secret",
            "api_key",
            "APIKey",
            "apiKey",
            "apikey",
            "tokens",
            "otp_code",
            "otp2",
            "password_1",
            "secretValue",
            "ｏｔｐ",
            "card_pin",
        ],
    )
    def test_that_end_in_a_secret_are_secrets(self, name):
        assert is_secret(name)

    @pytest.mark.parametrize(
        "name",
        [
            "otp_id",
            "otpRef",
            "token_sent_at",
            "secretary",
            "tokens_used",
            "key",
            "api",
            "code",
            "",
            "é",
            "pin_id_2",
            "spin",
            "value",
            "1",
        ],
    )
    def test_of_what_is_about_one_are_none(self, name):
        assert not is_secret(name)

    def test_are_the_hosts_to_say(self, settings):
        settings.TIMELINE = {**settings.TIMELINE, "SECRET_NAMES": ["tan"]}

        assert is_secret("bank_tan")
        assert not is_secret("password")


class TestPayloads:
    @pytest.mark.parametrize("payload", [{"otp": "1234"}, {"a": [{"b": {"user_password": "x"}}]}])
    def test_are_refused_by_each_verb_with_the_name_and_the_remedy(self, user, payload, now):
        order = Order.objects.create()
        for act in (
            lambda: emit("said", order, payload=payload),
            lambda: emit_many("said", [order], payload=payload),
            lambda: schedule("trial.remind", entity=user, payload=payload, at=now),
            lambda: check_data("payload", payload),
        ):
            with pytest.raises(InvalidInput, match=r"payload: has the name '(otp|user_password)'.*_id"):
                act()
        assert not Event.objects.exists()
