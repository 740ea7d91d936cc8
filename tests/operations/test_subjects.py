"""Subjects: whom something happens to, as each model of its family that has to do with it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.testapp.models import Account, Customer
from timeline.exceptions import WrongEntity
from timeline.models import EntityRef
from timeline.operations.record_event import lock_subject_now, lock_subjects, subjects_of

pytestmark = pytest.mark.django_db


def as_account(entity):
    return EntityRef("testapp.account", str(entity.pk))


def as_customer(entity):
    return EntityRef("testapp.customer", str(entity.pk))


def subject_of(ref, *started):
    return subjects_of([ref], started=started, using="default")[ref]


class TestSubjectsOf:
    def test_records_events_under_the_root_by_whichever_name_it_was_given(self):
        customer = Customer.objects.create()

        subject = subject_of(as_customer(customer))

        assert (subject.given, subject.ref) == (as_customer(customer), as_account(customer))

    def test_seeks_it_by_its_given_name_and_by_those_whose_timelines_may_start(self):
        customer = Customer.objects.create()

        assert subject_of(as_customer(customer)).sought == (as_customer(customer),)
        assert subject_of(as_customer(customer), "testapp.account", "testapp.order").sought == (
            as_account(customer),
            as_customer(customer),
        )

    def test_seeks_as_it_was_given_what_goes_by_none_of_its_names(self):
        proxy = EntityRef("testapp.orderproxy", "1")

        assert subject_of(proxy).sought == (proxy,)


class TestLockSubjects:
    def test_gives_those_that_are_there_with_the_names_they_go_by(self):
        account, customer = Account.objects.create(), Customer.objects.create()
        refs = [as_account(customer), as_account(account)]
        subjects = list(subjects_of(refs, started=["testapp.customer"], using="default").values())

        found = lock_subjects(subjects, read=False, using="default")

        assert list(found) == refs
        assert [list(subject.there) for subject in found.values()] == [
            [as_account(customer), as_customer(customer)],
            [as_account(account)],
        ]

    def test_reads_each_model_of_it_if_told_so(self):
        customer = Customer.objects.create()

        found = lock_subjects([subject_of(as_account(customer), "testapp.customer")], read=True, using="default")

        assert found[as_account(customer)].there == {
            as_account(customer): Account.objects.get(),
            as_customer(customer): customer,
        }

    def test_is_missing_by_the_name_it_was_given_though_there_by_another(self):
        account = Account.objects.create()
        subject = subject_of(as_customer(account), "testapp.account")

        assert lock_subjects([subject], gone=True, read=False, using="default") == {}
        with pytest.raises(WrongEntity, match=r"testapp\.customer \d+ is not in the database"):
            lock_subjects([subject], read=False, using="default")


class TestLockSubjectNow:
    @pytest.mark.parametrize("started", [(), ("testapp.account",)], ids=["by one name", "by several"])
    def test_tells_the_time_given_and_notes_what_is_there(self, now, started):
        customer = Customer.objects.create()
        subject = subject_of(as_customer(customer), *started)

        assert lock_subject_now(subject, read=False, now=now, using="default") == now
        assert set(subject.there) == set(subject.sought)

    @pytest.mark.parametrize("started", [(), ("testapp.account",)], ids=["by one name", "by several"])
    def test_tells_story_time_else(self, clock, now, started):
        clock.set(now + timedelta(days=900))
        subject = subject_of(as_customer(Customer.objects.create()), *started)

        assert lock_subject_now(subject, read=False, now=None, using="default") == clock.now

    def test_refuses_what_is_not_there(self, now):
        gone = EntityRef("testapp.order", "4711")

        with pytest.raises(WrongEntity):
            lock_subject_now(subject_of(gone), read=False, now=now, using="default")
