-- The rows of one model's entities, in the lock order; nothing of them is read but the key. The clock may be read in passing.
SELECT {key}
    , clock_timestamp()  -- if clock
FROM {table}
WHERE {key} = ANY(%(keys)s::{type}[])
ORDER BY {key}
FOR NO KEY UPDATE
