"""
Chaos: tasks of every kind, people who change their minds, one fault a second, and then the checker.

``python -m tests.faults.chaos --tasks 1000 --seconds 30 --seed 1 --over celery``; ``make chaos`` goes through twenty seeds.
"""
