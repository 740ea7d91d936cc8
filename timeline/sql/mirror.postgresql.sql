-- Write the state of runs to the model of the host that shows it. All of these runs have the same state. Rows that have that
-- state already are not written.
UPDATE {table}
SET {column} = %(shown)s
WHERE {key} = ANY(%(shown_to)s::{type}[])
    AND {column} <> %(shown)s
