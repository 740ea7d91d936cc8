-- The rows of one model's entities, in the lock order; nothing of them is read but the key. The clock may be read in passing:
-- outside, since within it would tell when the wait for a lock began.
SELECT {key}
    , clock_timestamp()  -- if clock
FROM (
    SELECT {key}
    FROM {table}
    WHERE {key} = ANY(%(keys)s::{type}[])
    ORDER BY {key}
    FOR NO KEY UPDATE
) AS held
