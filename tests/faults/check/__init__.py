"""
The history checker: reads rows, log, effects and journals, and says what should not be.

It stands apart from the package: it imports neither ``timeline`` nor Django, and knows of them the tables alone, so that
what is wrong in the package cannot be wrong in the same way here.
``python -m tests.faults.check --database URL --journal FOLDER`` prints what it says.
"""
