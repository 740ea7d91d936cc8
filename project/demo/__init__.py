"""The demo: people sign up, pay, close and extend while a clock runs fast."""
