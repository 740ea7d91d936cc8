-- Which of some runs of one timeline may differ from what the timeline wants. For all other runs, each row is as it should be,
-- and no row is missing. timeline/features/plans/drift_query.py explains what is compared. If this statement cannot decide, the run is in
-- doubt.
-- OFFSET 0 makes PostgreSQL compute a value once, and not at each place where it is used.
WITH wanted AS MATERIALIZED (
    SELECT *
    FROM json_to_recordset(%(tasks)s::json) AS wanted (
        task_key text, base int, is_day bool, before text, any_end bool, keeps_open bool, followers int, any_followers int,
        begins timestamptz[], to_anchor interval[], to_time interval[]
    )
)
SELECT asked.run_id
FROM unnest(%(runs)s::uuid[], %(keys)s::{key_type}[]) AS asked (run_id, entity_key)
LEFT JOIN ({entities}) AS entity ON entity.timeline_key = asked.entity_key  -- if entities
CROSS JOIN LATERAL (
    SELECT
        coalesce(bool_and(stands), true) AS all_stand,
        count(*) FILTER (WHERE is_wanted) AS number,
        coalesce(sum(followers), 0) AS followers,
        coalesce(bool_or(keeps_open), false) AS keeps_open
    FROM (
        SELECT
            wanted.task_key IS NOT NULL AS is_wanted,
            CASE
                WHEN wanted.task_key IS NULL THEN task.state IN ({final}) AND starts_with(task.task_key, %(prefix)s)
                WHEN task.state IN ({open})
                    THEN task.state <> 'active'
                        AND task.nominal_at = time.base + distance.to_time
                        AND task.anchor_value = time.base + distance.to_anchor
                        AND NOT (
                            task.state = 'scheduled'
                            AND task.scheduled_at IS NOT DISTINCT FROM task.planned_at
                            AND task.scheduled_at > {at}
                            AND task.scheduled_at <> task.nominal_at
                        )
                ELSE task.reason_code <> ALL(%(undone)s::text[])
                    AND distance.to_time IS NOT NULL
                    AND (
                        task.reason_code = 'operator'
                        OR (
                            task.anchor_value = time.base + distance.to_anchor
                            AND (NOT wanted.is_day OR task.anchor_date = (time.base AT TIME ZONE 'UTC')::date)
                        )
                    )
            END IS TRUE AS stands,
            CASE
                WHEN task.state = 'completed' THEN wanted.followers
                WHEN task.state IN ({final}) THEN wanted.any_followers
            END AS followers,
            wanted.keeps_open AND task.state IN ({open}) AS keeps_open
        FROM timeline_scheduledtask AS task
        LEFT JOIN wanted ON wanted.task_key = task.task_key AND task.occurrence = ''
        CROSS JOIN LATERAL (
            SELECT CASE
                WHEN wanted.base = 0 THEN (SELECT started_at FROM timeline_timelinerun AS run WHERE run.id = asked.run_id)
                WHEN wanted.base = -1 THEN (
                    SELECT CASE
                        WHEN before.state = 'completed' OR (wanted.any_end AND before.state IN ({final})) THEN before.finished_at
                    END
                    FROM timeline_scheduledtask AS before
                    WHERE before.run_id = asked.run_id AND before.task_key = wanted.before AND before.occurrence = ''
                    ORDER BY before.revision DESC
                    LIMIT 1
                )
                {bases}
            END AS base
            OFFSET 0
        ) AS time
        CROSS JOIN LATERAL (
            SELECT
                wanted.to_anchor[width_bucket(time.base, wanted.begins)] AS to_anchor,
                wanted.to_time[width_bucket(time.base, wanted.begins)] AS to_time
            OFFSET 0
        ) AS distance
        WHERE task.run_id = asked.run_id
            AND NOT (
                task.state IN ({final})
                AND EXISTS (
                    SELECT FROM timeline_scheduledtask AS later
                    WHERE later.run_id = task.run_id AND later.task_key = task.task_key
                        AND later.occurrence = task.occurrence AND later.revision > task.revision
                )
            )
    ) AS row
) AS rows
WHERE (
    rows.all_stand
    AND rows.number = {roots} + rows.followers
    AND (rows.keeps_open OR {unanchored})
    AND entity.timeline_key IS NOT NULL  -- if entities
    AND entity.timeline_key::text COLLATE "C" = asked.entity_key::text COLLATE "C"  -- if text
) IS NOT TRUE
