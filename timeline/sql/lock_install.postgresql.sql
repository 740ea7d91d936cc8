-- Wait until no other process installs functions and triggers. The lock ends with the transaction.
SELECT pg_advisory_xact_lock(hashtext('django-entity-timeline'), hashtext('install'))
