"""
Races: two acts meet on the same row at the same moment, many times, and it is as if one came after the other.

``duels.py`` lets them meet; each of the races is a function that is told how many rounds, fails where something is not as it
must be, and else says how each round ended. ``faults.py`` is what each of them must notice.
"""
