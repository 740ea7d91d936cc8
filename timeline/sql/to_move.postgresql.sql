-- The open runs of some machines and one entity, and the rows from which they are planned; see function_to_move, which migrate
-- installs.
SELECT of_run::text, of_task::text
FROM timeline_to_move(%(label)s, %(id)s, %(timelines)s::text[], %(others)s::text[])
