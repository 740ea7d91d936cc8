-- Write which event was the last of the burst that a row stands for, and what it stands for.
UPDATE timeline_scheduledtask
SET cause_id = json_extract(new.value, '$[1]'), payload = json_extract(new.value, '$[2]')
FROM json_each(%(rows)s) AS new
WHERE timeline_scheduledtask.id = json_extract(new.value, '$[0]')
