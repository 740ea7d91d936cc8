"""What should be seen in pretix."""
