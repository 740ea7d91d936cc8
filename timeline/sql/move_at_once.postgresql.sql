-- Write a whole move of one entity; see function_move_at_once, which migrate installs.
SELECT timeline_move_at_once(
    %(event_row)s::json, %(moves)s::json, %(ids)s::uuid[], %(changes)s::json, %(tasks_changed)s::uuid[], %(tasks)s::json,
    %(at)s::timestamptz
)::text AS done
