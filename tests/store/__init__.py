"""
Conformance: whichever way a move is written, its row and its log are the same.

``rules.py`` is the specification: which column changes with which move. ``moves.py`` draws rows and moves, ``ways.py`` has each
implementation, ``checking.py`` compares what one has made with the rules. A new implementation needs an entry in ``ways.py``.
"""
