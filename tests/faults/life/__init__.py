"""The rule machine: ``machine.py`` is what may happen, ``model.py`` what may come of it, ``faults.py`` what must be noticed."""
