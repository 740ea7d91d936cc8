-- Which of some runs of one timeline may differ from what the timeline wants. For all other runs, each row is as it should be,
-- and no row is missing. timeline/features/plans/drift_query.py explains what is compared. If this statement cannot decide, the run is in
-- doubt.
WITH asked AS MATERIALIZED (
    SELECT json_extract(value, '$[0]') AS run_id, json_extract(value, '$[1]') AS entity_key FROM json_each(%(asked)s)
),
wanted AS MATERIALIZED (
    SELECT
        json_extract(value, '$.task_key') AS task_key, json_extract(value, '$.base') AS base,
        json_extract(value, '$.is_day') AS is_day, json_extract(value, '$.before') AS before,
        json_extract(value, '$.any_end') AS any_end, json_extract(value, '$.keeps_open') AS keeps_open,
        json_extract(value, '$.followers') AS followers, json_extract(value, '$.any_followers') AS any_followers
    FROM json_each(%(tasks)s)
),
piece AS MATERIALIZED (
    SELECT
        json_extract(value, '$[0]') AS task_key, json_extract(value, '$[1]') AS begins, json_extract(value, '$[2]') AS ends,
        json_extract(value, '$[3]') AS to_anchor, json_extract(value, '$[4]') AS to_time
    FROM json_each(%(pieces)s)
),
facts AS MATERIALIZED (
    SELECT
        asked.run_id,
        asked.entity_key = entity.timeline_key COLLATE BINARY AS is_there,  -- if entities
        true AS is_there,  -- if not entities
        {roots} AS roots,
        {unanchored} AS is_unanchored,
        {anchors}
        {instant run.started_at} AS started_at
    FROM asked
    JOIN timeline_timelinerun AS run ON run.id = asked.run_id
    LEFT JOIN ({entities}) AS entity ON entity.timeline_key = asked.entity_key  -- if entities
),
row AS (
    SELECT
        task.run_id, task.task_key, task.state, task.reason_code, task.scheduled_at, task.planned_at, task.nominal_at,
        task.anchor_date, wanted.task_key IS NOT NULL AS is_wanted, wanted.is_day, wanted.keeps_open, wanted.followers,
        wanted.any_followers, {instant task.nominal_at} AS nominal, {instant task.anchor_value} AS anchor,
        CASE
            WHEN wanted.base = 0 THEN facts.started_at
            WHEN wanted.base = -1 THEN (
                SELECT CASE
                    WHEN before.state = 'completed' OR (wanted.any_end AND before.state IN ({final}))
                        THEN {instant before.finished_at}
                END
                FROM timeline_scheduledtask AS before
                WHERE before.run_id = task.run_id AND before.task_key = wanted.before AND before.occurrence = ''
                ORDER BY before.revision DESC
                LIMIT 1
            )
            {bases}
        END AS base
    FROM facts
    JOIN timeline_scheduledtask AS task ON task.run_id = facts.run_id
    LEFT JOIN wanted ON wanted.task_key = task.task_key AND task.occurrence = ''
    WHERE NOT (
        task.state IN ({final})
        AND EXISTS (
            SELECT 1 FROM timeline_scheduledtask AS later
            WHERE later.run_id = task.run_id AND later.task_key = task.task_key
                AND later.occurrence = task.occurrence AND later.revision > task.revision
        )
    )
),
told AS (
    SELECT
        row.run_id,
        row.is_wanted,
        CASE
            WHEN NOT row.is_wanted
                THEN row.state IN ({final}) AND substr(row.task_key, 1, length(%(prefix)s)) = %(prefix)s
            WHEN row.state IN ({open})
                THEN row.state <> 'active'
                    AND row.nominal = row.base + piece.to_time
                    AND row.anchor = row.base + piece.to_anchor
                    AND NOT (
                        row.state = 'scheduled'
                        AND row.scheduled_at IS row.planned_at
                        AND row.scheduled_at > %(at)s
                        AND row.scheduled_at <> row.nominal_at
                    )
            ELSE row.reason_code NOT IN (SELECT value FROM json_each(%(undone)s))
                AND piece.to_time IS NOT NULL
                AND (
                    row.reason_code = 'operator'
                    OR (
                        row.anchor = row.base + piece.to_anchor
                        AND (NOT row.is_day OR row.anchor_date = date(row.base / 1000000, 'unixepoch'))
                    )
                )
        END IS TRUE AS stands,
        CASE
            WHEN row.state = 'completed' THEN row.followers
            WHEN row.state IN ({final}) THEN row.any_followers
        END AS followers,
        row.keeps_open AND row.state IN ({open}) AS keeps_open
    FROM row
    LEFT JOIN piece ON piece.task_key = row.task_key AND row.base >= piece.begins AND row.base < piece.ends
),
rows AS (
    SELECT
        run_id, min(stands) AS all_stand, sum(is_wanted) AS number, sum(followers) AS followers, max(keeps_open) AS keeps_open
    FROM told
    GROUP BY run_id
)
SELECT facts.run_id
FROM facts
LEFT JOIN rows ON rows.run_id = facts.run_id
WHERE (
    coalesce(rows.all_stand, true)
    AND coalesce(rows.number, 0) = facts.roots + coalesce(rows.followers, 0)
    AND (coalesce(rows.keeps_open, false) OR facts.is_unanchored)
    AND facts.is_there
) IS NOT TRUE
