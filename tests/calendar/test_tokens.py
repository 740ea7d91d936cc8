"""Tokens: what the address of a person's calendar is known by."""

from __future__ import annotations

import pytest
from django.core.signing import Signer
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.http import urlsafe_base64_encode

from project.accounts.models import User
from timeline.calendar.tokens import LONGEST, calendar_token, person_of
from timeline.exceptions import InvalidInput, WrongEntity
from timeline.models.entities import MAX_ID
from timeline.policy import TimelinePolicy


class Counting(TimelinePolicy):
    """Revokes by a field of the account."""

    def calendar_key(self, user):
        return user.website


class TestCalendarToken:
    def test_opens_the_calendar_of_its_person(self, person):
        ada, ben = person("ada"), person("ben")

        assert [person_of(calendar_token(each)) for each in (ada, ben)] == [ada, ben]

    def test_says_nothing_of_what_it_is_valid_with(self, person):
        ada = person("ada")

        assert ada.password[1:9] not in calendar_token(ada)

    def test_needs_a_key(self, person):
        ada = person("ada")
        ada.password = ""

        with pytest.raises(
            InvalidInput, match=rf"user: there is no key of a calendar for {ada.pk}\. Give them"
        ) as error:
            calendar_token(ada)

        assert error.value.field == "user"

    def test_needs_somebody_who_is_saved(self):
        with pytest.raises(WrongEntity):
            calendar_token(User(email="ada@example.com", password="!"))  # noqa: S106 (no password)


class TestPersonOf:
    def test_is_nobody_once_there_is_a_new_password(self, person):
        ada, ben = person("ada"), person("ben")
        before, others = calendar_token(ada), calendar_token(ben)

        ada.set_unusable_password()
        ada.save()

        assert person_of(before) is None
        assert person_of(calendar_token(ada)) == ada
        assert person_of(others) == ben

    def test_is_nobody_once_the_hosts_own_key_changes(self, person, settings):
        settings.TIMELINE = {**settings.TIMELINE, "POLICY": "tests.calendar.test_tokens.Counting"}
        ada = person("ada", website="1")
        before = calendar_token(ada)

        ada.set_unusable_password()
        ada.save()
        assert person_of(before) == ada
        User.objects.update(website="2")

        assert person_of(before) is None

    @pytest.mark.parametrize("columns", [{"is_active": False}, {"password": ""}])
    def test_is_nobody_who_may_not_have_one_any_more(self, person, columns):
        token = calendar_token(person("ada"))

        User.objects.update(**columns)

        assert person_of(token) is None

    def test_is_looked_for_by_as_much_work_for_whoever_is_there_and_for_nobody(self, person, monkeypatch):
        """Else the time that an answer takes would tell who has an account."""
        ada, ben = person("ada"), person("ben", is_active=False)
        looked, unsign = [], Signer.unsign
        monkeypatch.setattr(Signer, "unsign", lambda signer, text: looked.append(text) or unsign(signer, text))

        for key in (ada.pk, ben.pk, 987654):
            looked.clear()
            with CaptureQueriesContext(connection) as asked:
                assert person_of(f"{urlsafe_base64_encode(str(key).encode())}.{'A' * 43}") is None
            assert (len(asked), len(looked)) == (1, 1), key

    def test_is_nobody_with_the_signature_of_another(self, person):
        ada, ben = (calendar_token(person(name)) for name in ("ada", "ben"))

        assert person_of(f"{ada.partition('.')[0]}.{ben.partition('.')[2]}") is None

    def test_is_still_them_after_the_sites_key_was_replaced(self, person, settings):
        ada = person("ada")
        token = calendar_token(ada)

        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another", [settings.SECRET_KEY]

        assert person_of(token) == ada
        settings.SECRET_KEY_FALLBACKS = []
        assert person_of(token) is None

    @pytest.mark.parametrize(
        "name", ["", "1", "ada", "\x00", "1\x00", "9" * 40, "-1", "0", "\ud800".encode("utf-8", "surrogatepass")]
    )
    def test_is_nobody_for_what_is_no_key(self, db, name):
        text = urlsafe_base64_encode(name if isinstance(name, bytes) else name.encode())

        assert person_of(f"{text}.{'A' * 43}") is None

    def test_is_found_by_one_spelling(self, person):
        """Whoever revokes an address, or looks for it in a log, looks for what was given out."""
        ada = person("ada", pk=1)
        name, signature = calendar_token(ada).split(".")

        spellings = [
            "MR",
            "MQ=",
            "MQ==",
            "M!Q",
            " MQ",
            "MDE",
            "KzE",
            "MSA",
            "2aE",
        ]  # 01, +1, "1 " and an Arabic 1 are 1, too.

        assert person_of(f"{name}.{signature}") == ada
        assert [person_of(f"{other}.{signature}") for other in spellings] == [None] * len(spellings)
        assert [person_of(f"{name}.{other}") for other in (f".{signature}", f"{signature}=", f"x.{signature}")] == [
            None
        ] * 3

    def test_has_room_for_any_key(self):
        """Each letter of which may be four bytes long."""
        assert len(urlsafe_base64_encode(("\U0010ffff" * MAX_ID).encode())) + 1 + 43 <= LONGEST

    @pytest.mark.parametrize("token", ["", ".", "..", "MQ", "MQ.", "=.=", "MQ.\u00fc", "M" * 701, "\ud800.\ud800"])
    def test_is_nobody_for_what_is_no_token(self, person, token):
        person("ada", pk=1)

        assert person_of(token) is None
