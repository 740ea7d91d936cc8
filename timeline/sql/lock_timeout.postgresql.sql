-- For the rest of the transaction, wait for a lock no longer than this, and no longer than the present setting allows. Returns
-- how other connections know this transaction (process and start), and whether they can see it and may break it off.
SELECT
    pg_backend_pid(),
    now(),
    session_user = current_user
        AND current_setting('track_activities')::boolean
        AND has_function_privilege('pg_terminate_backend(integer, bigint)', 'EXECUTE'),
    set_config(
        'lock_timeout',
        (1000 * EXTRACT(epoch FROM LEAST(NULLIF(current_setting('lock_timeout')::interval, '0'), %(most)s::interval)))::integer::text,
        true
    )
