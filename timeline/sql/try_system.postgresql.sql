-- As lock_system, but nobody waits.
SELECT pg_try_advisory_xact_lock(hashtext('django-entity-timeline'), hashtext('system'))
