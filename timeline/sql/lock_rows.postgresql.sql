-- Lock the rows of entities of one model, in the lock order. Only the key is read. The clock and the isolation level may be
-- read in the same statement. The clock is in the outer query: inside, it would tell when the wait for a lock began.
-- A shared lock can be held by several transactions at a time, while an emit for the entity has to wait. It is taken without
-- waiting: rows that somebody else has locked are skipped.
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
