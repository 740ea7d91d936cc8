-- As lock_system, but without waiting: tells whether the lock was taken.
SELECT pg_try_advisory_xact_lock(hashtext('django-entity-timeline'), hashtext('system'))
