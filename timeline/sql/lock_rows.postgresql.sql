-- The rows of one model's entities, in the lock order; nothing of them is read but the key. The clock is read in passing.
SELECT {key}, clock_timestamp()
FROM {table}
WHERE {key} = ANY(%(keys)s::{type}[])
ORDER BY {key}
FOR NO KEY UPDATE
