"""What a booking does next: state → event → next state. All that may happen to one stands here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from project.portal.states import S
from timeline import BACK, IGNORE, OPEN, STAY, WORKING

TABLE: Final[Mapping[Any, Mapping[str, Any]]] = {
    S.CREATED: {"booking.submitted": S.VALIDATING},
    S.VALIDATING: {"input.ok": S.QUEUED, "input.bad": S.FAILED},
    S.QUEUED: {"portal.open": S.AUTHENTICATING, "portal.closed": S.AWAITING_RELEASE},
    S.AWAITING_RELEASE: {"release.reached": S.AUTHENTICATING, "sla.release": S.OPERATOR_ESCALATED},
    S.AUTHENTICATING: {
        "auth.ok": S.SEARCHING,
        "auth.otp_required": S.AUTH_OTP_REQUIRED,
        "auth.captcha": S.AUTH_CAPTCHA_REQUIRED,
        "auth.rejected": S.CREDENTIALS_REQUIRED,
    },
    S.AUTH_OTP_REQUIRED: {"otp.given": S.AUTH_OTP_SUBMITTING, "otp.timed_out": S.OPERATOR_ESCALATED},
    S.AUTH_OTP_SUBMITTING: {"auth.ok": S.SEARCHING, "otp.wrong": S.AUTH_OTP_REQUIRED},
    S.AUTH_CAPTCHA_REQUIRED: {"operator.resolved": BACK, "sla.captcha": S.OPERATOR_ESCALATED},
    S.CREDENTIALS_REQUIRED: {"credentials.updated": S.AUTHENTICATING, "sla.credentials": S.EXPIRED},
    S.SEARCHING: {"slot.found": S.SLOT_FOUND, "slot.none": S.NO_SLOT},
    S.NO_SLOT: {"look.again": S.SEARCHING, "search.over": S.EXPIRED},
    S.SLOT_FOUND: {"slot.suits": S.HOLDING_SLOT, "slot.ask": S.CHOICE_REQUIRED},
    S.CHOICE_REQUIRED: {"slot.chosen": S.HOLDING_SLOT, "choice.timed_out": S.SEARCHING},
    S.HOLDING_SLOT: {"slot.held": S.SLOT_HELD, "slot.gone": S.SEARCHING},
    S.SLOT_HELD: {"form.open": S.FILLING_FORM},
    S.FILLING_FORM: {"form.done": S.CONFIRMING, "form.documents": S.DOCUMENTS_REQUIRED, "form.fee": S.PAYMENT_REQUIRED},
    S.DOCUMENTS_REQUIRED: {"documents.given": S.FILLING_FORM, "hold.over": S.SEARCHING},
    S.PAYMENT_REQUIRED: {"payment.completed": S.CONFIRMING, "hold.over": S.SEARCHING},
    S.CONFIRMING: {"confirm.ok": S.VERIFYING, "confirm.otp_required": S.CONFIRM_OTP_REQUIRED},
    S.CONFIRM_OTP_REQUIRED: {"otp.given": S.CONFIRM_OTP_SUBMITTING, "otp.timed_out": S.OPERATOR_ESCALATED},
    S.CONFIRM_OTP_SUBMITTING: {"confirm.ok": S.VERIFYING, "otp.wrong": S.CONFIRM_OTP_REQUIRED},
    S.VERIFYING: {"booking.verified": S.BOOKED, "booking.absent": S.SEARCHING},
    S.RETRY_SCHEDULED: {"retry.due": BACK, "retries.used_up": S.OPERATOR_ESCALATED},
    S.OPERATOR_ESCALATED: {"operator.resolved": BACK, "operator.gave_up": S.FAILED, "sla.operator": STAY},
    S.BOOKED: {},
    S.FAILED: {},
    S.EXPIRED: {},
    S.CANCELLED: {},
    WORKING: {"portal.error": S.RETRY_SCHEDULED, "portal.unknown": S.OPERATOR_ESCALATED},
    OPEN: {"booking.cancelled": S.CANCELLED, "portal.heartbeat": IGNORE},
}

EVENTS: Final = sorted({event for row in TABLE.values() for event in row})
