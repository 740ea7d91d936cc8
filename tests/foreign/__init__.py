"""Hosts that we did not make, each in an environment of its own below ``.foreign``: run by ``make foreign``, see docs."""
