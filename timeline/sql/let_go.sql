-- Let go what is due of a kind by the moment at which a person releases its brake: by id, so that nothing that is given such a
-- time later is among it.
INSERT INTO timeline_admission (task_id, task_key, at)
SELECT id, task_key, %(at)s
FROM timeline_scheduledtask
WHERE task_key = %(task_key)s AND state IN ({open}) AND scheduled_at <= %(at)s
ON CONFLICT (task_id) DO NOTHING
