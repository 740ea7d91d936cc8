"""What errors that are stored on rows have in common."""

from __future__ import annotations

import pytest

from timeline.likeness import cause_in, headline


class TestCauseIn:
    @pytest.mark.parametrize(
        ("error", "cause"),
        [
            ("smtplib.SMTPException: 552 mailbox of 'ada' is full", "smtplib.SMTPException: # mailbox of # is full"),
            ("boto3.S3Error: no such bucket", "boto3.S3Error: no such bucket"),
            ("ValueError: a: b is no pair", "ValueError: a: b is no pair"),
        ],
    )
    def test_is_the_class_and_the_fixed_parts_of_the_message(self, error, cause):
        assert cause_in(error) == cause

    @pytest.mark.parametrize(
        "error",
        [
            "KeyError: 'name'",
            "ValueError: ",
            "ValueError",
            "",
            "OSError: [17] 5.5",
            "ExceptionGroup: many failed (2 sub-exceptions)",
        ],
    )
    def test_is_none_where_that_says_too_little(self, error):
        assert cause_in(error) == ""


class TestHeadline:
    def test_names_nobody_and_no_module(self):
        error = "project.mails.MailRefused: No mail is taken for ben@example.com: the mailbox is full\nand more"

        assert headline(error) == "MailRefused: No mail is taken for …: the mailbox is full"

    def test_of_what_is_no_error_is_its_first_line(self):
        assert headline("said no\ntwice") == "said no"
