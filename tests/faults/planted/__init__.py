"""
The planted faults: patches of a copy of the package, each of which the checker must find.

``course.py`` is a short way through what the package promises, the same each time; ``patches.py`` are the faults.
"""
