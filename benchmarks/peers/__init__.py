"""
One small file for each way to keep work in PostgreSQL: ours, and others'.

Each runs in an environment of its own and imports nothing but its library, psycopg, the standard library and the few
modules here that do no more either: ``python -m benchmarks.peers <name> <command>``.
"""
