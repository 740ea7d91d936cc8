"""
The fault kit: processes that are killed, frozen and cut off, and a checker that reads from outside what became of the work.

``harness/`` breaks things, ``app/`` is what runs meanwhile and says so in a journal, ``check/`` judges, knowing nothing of the
package but its tables, and ``planted/`` keeps the judge honest. ``python -m tests.faults.chaos`` puts them together.
"""
