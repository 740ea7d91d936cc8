-- Lock what stands for the entity of system timelines, since it has no row. The lock ends with the transaction.
SELECT pg_advisory_xact_lock(hashtext('django-entity-timeline'), hashtext('system')), current_setting('transaction_isolation')
