"""Tasks that rest until an event comes, or a person decides: ``wait_for``, ``self.wait_for``, ``approval``."""
