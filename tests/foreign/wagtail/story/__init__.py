"""What should be seen in the Wagtail site."""
