-- For the rest of the transaction, wait no longer than this for a lock; no longer than before, where that was less. Gives by what
-- other connections know the transaction.
SELECT
    pg_backend_pid(),
    now(),
    set_config(
        'lock_timeout',
        (1000 * EXTRACT(epoch FROM LEAST(NULLIF(current_setting('lock_timeout')::interval, '0'), %(most)s::interval)))::integer::text,
        true
    )
