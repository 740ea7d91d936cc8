"""Figures of the machine at hand, each by one command. An app too: it declares the task that does nothing."""
