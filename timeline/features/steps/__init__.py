"""Parts of a handler that are done once, whatever happens to the attempt: ``@step``, ``self.each``, ``self.progress``."""
