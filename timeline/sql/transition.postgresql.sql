-- One write for any number of tasks, with its log entries; its rules: columns.sql, entries.sql. It makes one change that is given,
-- many, or the same move of all rows that "held" finds. What is given is guarded by the state and attempt it was decided on; what
-- no change touches is left out: half of the time of a single change goes into planning and preparing. Rows that somebody else
-- has locked are waited for, or passed over. Several are locked first, in the lock order: two writes of the same rows would else
-- wait for each other.
-- The primary key finds the rows, whatever the statistics say of states that live for milliseconds. For this the state is compared
-- as an expression, lest the planner walk the index of all rows in it, and ids come from arrays, each of which PostgreSQL takes for
-- ten elements: from "held" itself, which it may take for one row or for a million, it would find each of them by all ids, or
-- read the whole table.
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
