"""A handler makes one task for each of many things: ``self.fan_out``."""
