"""Billing: customers pay, merchants are paid out, and what thirty-four cron jobs did for it are timelines."""
