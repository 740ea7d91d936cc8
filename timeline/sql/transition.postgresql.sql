-- Change any number of tasks, and write their log entries, in one statement. The rules are in columns.sql and entries.sql.
-- There are three forms: one change that is given, many that are given, or the same move of all rows that "held" finds.
-- Changes that are given are made only if the row still has the state and the attempt for which they were decided.
-- Columns that no change touches are left out, because planning and preparing take half of the time of a single change.
-- Rows that somebody else has locked are waited for, or skipped. Several rows are locked first, in the lock order. Without
-- that, two statements that change the same rows could wait for each other (a deadlock).
-- The rows must always be found by the primary key. Statistics about states that last for milliseconds are often wrong, so:
-- - The state is compared as an expression. Otherwise PostgreSQL might read the index of all rows in that state.
-- - The ids come from arrays, because PostgreSQL always expects ten elements in an array of unknown length. For "held" itself
--   it may expect one row or a million. Then it would compare each row with all ids, or read the whole table.
WITH
held AS MATERIALIZED (  -- if held
{held}  -- if held
),  -- if held
changed AS (
    UPDATE timeline_scheduledtask AS task
    SET
{rules}
    FROM json_to_recordset(%(changes)s::json) AS change({values})  -- if many
    FROM unnest(  -- if found
        ARRAY(SELECT id FROM held), ARRAY(SELECT state FROM held)  -- if found
        , ARRAY(SELECT slot FROM held)  -- if limited
    ) AS change(id, from_state  -- if found
        , slot  -- if limited
    )  -- if found
    WHERE task.id = change.id
        AND task.id = ANY(ARRAY(SELECT id FROM held))  -- if these
        AND task.id = ANY(%(ids)s::uuid[])  -- if given
        AND task.state || '' = change.from_state  -- if not found
        AND task.attempt = change.from_attempt  -- if not found
        AND change.from_state IN ({sources})  -- if found
    RETURNING {returned},
        change.via AS via,  -- if via
        change.detail AS detail,  -- if detail
        change.actor AS said_by, change.reason_code AS said_code, change.reason AS said,  -- if reason_code
        change.from_state AS from_state
),
logged AS (
{entries}
)
SELECT {columns}  -- if not told
SELECT json_agg(changed) INTO told  -- if told
FROM changed
ORDER BY priority, scheduled_at, id  -- if found
