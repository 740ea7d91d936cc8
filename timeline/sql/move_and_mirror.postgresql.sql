-- All of a move of one entity, and the state that it has come to, where a host's model shows that: unless the event is not new.
WITH its AS MATERIALIZED (
{move}
),
mirrored AS (
{mirror}
    AND (SELECT its.done IS NOT NULL FROM its)
)
SELECT its.done FROM its
