"""The 28 states of a booking, apart from all that uses them: the model, the machine, the pages."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class S(StrEnum):
    """
    Where a booking is.

    Those that are neither rests nor ends are working ones: something is being done, here or at the portal.
    """

    CREATED = "CREATED"
    VALIDATING = "VALIDATING"
    QUEUED = "QUEUED"
    AWAITING_RELEASE = "AWAITING_RELEASE"
    AUTHENTICATING = "AUTHENTICATING"
    AUTH_OTP_REQUIRED = "AUTH_OTP_REQUIRED"
    AUTH_OTP_SUBMITTING = "AUTH_OTP_SUBMITTING"
    AUTH_CAPTCHA_REQUIRED = "AUTH_CAPTCHA_REQUIRED"
    CREDENTIALS_REQUIRED = "CREDENTIALS_REQUIRED"
    SEARCHING = "SEARCHING"
    NO_SLOT = "NO_SLOT"
    SLOT_FOUND = "SLOT_FOUND"
    CHOICE_REQUIRED = "CHOICE_REQUIRED"
    HOLDING_SLOT = "HOLDING_SLOT"
    SLOT_HELD = "SLOT_HELD"
    FILLING_FORM = "FILLING_FORM"
    DOCUMENTS_REQUIRED = "DOCUMENTS_REQUIRED"
    PAYMENT_REQUIRED = "PAYMENT_REQUIRED"
    CONFIRMING = "CONFIRMING"
    CONFIRM_OTP_REQUIRED = "CONFIRM_OTP_REQUIRED"
    CONFIRM_OTP_SUBMITTING = "CONFIRM_OTP_SUBMITTING"
    VERIFYING = "VERIFYING"
    RETRY_SCHEDULED = "RETRY_SCHEDULED"
    OPERATOR_ESCALATED = "OPERATOR_ESCALATED"
    BOOKED = "BOOKED"
    FAILED = "FAILED"
    EXPIRED = "EXPIRED"
    CANCELLED = "CANCELLED"


# Those in which a booking waits: for a person, for the portal, for a time.
RESTS: Final = frozenset(
    {
        S.AWAITING_RELEASE,
        S.AUTH_OTP_REQUIRED,
        S.AUTH_CAPTCHA_REQUIRED,
        S.CREDENTIALS_REQUIRED,
        S.NO_SLOT,
        S.CHOICE_REQUIRED,
        S.DOCUMENTS_REQUIRED,
        S.PAYMENT_REQUIRED,
        S.CONFIRM_OTP_REQUIRED,
        S.RETRY_SCHEDULED,
        S.OPERATOR_ESCALATED,
    }
)
ENDS: Final = frozenset({S.BOOKED, S.FAILED, S.EXPIRED, S.CANCELLED})
WORKING_ONES: Final = tuple(state for state in S if state not in RESTS | ENDS)

# Those in which an operator is asked, or may help.
FOR_OPERATORS: Final = (S.OPERATOR_ESCALATED, S.AUTH_CAPTCHA_REQUIRED)
