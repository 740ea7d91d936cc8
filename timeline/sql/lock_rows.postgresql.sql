-- The rows of one model's entities, in the lock order; nothing of them is read but the key. The clock may be read in passing:
-- outside, since within it would tell when the wait for a lock began; so may the level of the transaction. A shared lock is one
-- that several may have at a time, but nobody who emits: it is not waited for.
SELECT {key}
    , clock_timestamp()  -- if clock
    , current_setting('transaction_isolation')  -- if level
FROM (
    SELECT {key}
    FROM {table}
    WHERE {key} = ANY(%(keys)s::{type}[])
    ORDER BY {key}
    FOR NO KEY UPDATE  -- if not shared
    FOR SHARE SKIP LOCKED  -- if shared
) AS held
