-- Of some keys those that nobody else gives places of just now; nobody else does until the transaction ends.
SELECT key
FROM unnest(%(limit_keys)s::text[]) AS key
WHERE pg_try_advisory_xact_lock(hashtext('django-entity-timeline limit'), hashtext(key))
