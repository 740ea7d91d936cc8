"""The timelines of billing, by what starts them."""

from project.billing.timelines.customers import Directory, Onboarding, Welcome
from project.billing.timelines.payments import FailedPayment, Invoicing
from project.billing.timelines.reports import AnnualReport, Metrics, MonthlyBilling, WeeklyReport
from project.billing.timelines.settlement import Reconciliation, Settlement

__all__ = [
    "AnnualReport",
    "Directory",
    "FailedPayment",
    "Invoicing",
    "Metrics",
    "MonthlyBilling",
    "Onboarding",
    "Reconciliation",
    "Settlement",
    "WeeklyReport",
    "Welcome",
]
