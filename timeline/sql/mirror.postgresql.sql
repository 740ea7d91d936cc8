-- The state of some runs, which is one, where a host's model shows it. Rows that have it already are not written.
UPDATE {table}
SET {column} = %(shown)s
WHERE {key} = ANY(%(shown_to)s::{type}[])
    AND {column} <> %(shown)s
