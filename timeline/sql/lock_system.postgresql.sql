-- Stands for the row that a system timeline's entity does not have; given back at the end of the transaction.
SELECT pg_advisory_xact_lock(hashtext('django-entity-timeline'), hashtext('system')), current_setting('transaction_isolation')
