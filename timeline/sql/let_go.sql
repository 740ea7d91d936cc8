-- Let go what is due of a kind by the moment at which a person releases its brake: by id, so that nothing that is given such a
-- time later is among it. What a look has let in that was under way, and read the clock later, is let go as well.
-- In order of ids, as looks let in, so that none is in a deadlock with it.
INSERT INTO timeline_admission (task_id, task_key, at)
SELECT id, task_key, %(at)s
FROM timeline_scheduledtask
WHERE task_key = %(task_key)s AND state IN ({open}) AND scheduled_at <= %(at)s
ORDER BY id
ON CONFLICT (task_id) DO UPDATE SET at = excluded.at WHERE timeline_admission.at > excluded.at
