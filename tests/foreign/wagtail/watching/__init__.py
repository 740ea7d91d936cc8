"""A timeline about all pages, for Wagtail's own tests."""
