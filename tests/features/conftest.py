"""The tests of features: each feature's lie beside each other, and are named after the rooms that they are about."""

from tests.databases import VENDOR

collect_ignore_glob = [] if VENDOR == "postgresql" else ["*/test_postgresql*.py"]
