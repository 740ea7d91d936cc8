-- Write a whole move of one entity, and its new state in the model of the host that shows it. If the event is not new, nothing
-- is written.
WITH its AS MATERIALIZED (
{move}
),
mirrored AS (
{mirror}
    AND (SELECT its.done IS NOT NULL FROM its)
)
SELECT its.done FROM its
