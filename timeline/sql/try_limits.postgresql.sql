-- Lock keys of a limit until the transaction ends, without waiting. Returns those that nobody else has locked. Only who has the
-- lock of a key gives its places.
SELECT key
FROM unnest(%(limit_keys)s::text[]) AS key
WHERE pg_try_advisory_xact_lock(hashtext('django-entity-timeline limit'), hashtext(key))
