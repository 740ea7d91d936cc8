-- What tells whether anything has changed: the newest id of each table; and, except for holds, the hundredth newest and how
-- many there are, up to a hundred. Ids are not in the order of commits, and the hundredth changes if a row comes in between.
-- Rows of steps and holds are changed in place, so some of their values are read, too.
SELECT
    (SELECT id FROM timeline_logentry ORDER BY id DESC LIMIT 1),
    (SELECT id FROM timeline_logentry ORDER BY id DESC LIMIT 1 OFFSET 99),
    (SELECT count(*) FROM (SELECT id FROM timeline_logentry ORDER BY id DESC LIMIT 100) AS newest),
    (SELECT id FROM timeline_scheduledtask ORDER BY id DESC LIMIT 1),
    (SELECT id FROM timeline_scheduledtask ORDER BY id DESC LIMIT 1 OFFSET 99),
    (SELECT count(*) FROM (SELECT id FROM timeline_scheduledtask ORDER BY id DESC LIMIT 100) AS newest),
    (SELECT id FROM timeline_timelinerun ORDER BY id DESC LIMIT 1),
    (SELECT id FROM timeline_timelinerun ORDER BY id DESC LIMIT 1 OFFSET 99),
    (SELECT count(*) FROM (SELECT id FROM timeline_timelinerun ORDER BY id DESC LIMIT 100) AS newest),
    (SELECT id FROM timeline_runentry ORDER BY id DESC LIMIT 1),
    (SELECT id FROM timeline_runentry ORDER BY id DESC LIMIT 1 OFFSET 99),
    (SELECT count(*) FROM (SELECT id FROM timeline_runentry ORDER BY id DESC LIMIT 100) AS newest),
    (SELECT id FROM timeline_event ORDER BY id DESC LIMIT 1),
    (SELECT id FROM timeline_event ORDER BY id DESC LIMIT 1 OFFSET 99),
    (SELECT count(*) FROM (SELECT id FROM timeline_event ORDER BY id DESC LIMIT 100) AS newest),
    (SELECT id FROM timeline_step ORDER BY id DESC LIMIT 1),
    (SELECT id FROM timeline_step ORDER BY id DESC LIMIT 1 OFFSET 99),
    (SELECT count(*) FROM (SELECT id FROM timeline_step ORDER BY id DESC LIMIT 100) AS newest),
    (SELECT sum(coalesce(done, 0) + attempt) FROM (SELECT done, attempt FROM timeline_step ORDER BY id DESC LIMIT 100) AS newest),
    (SELECT max(recorded_at) FROM (SELECT recorded_at FROM timeline_step ORDER BY id DESC LIMIT 100) AS newest),
    (SELECT id FROM timeline_hold ORDER BY id DESC LIMIT 1),
    (SELECT count(*) + count(lifted_at) + count(released_at) FROM (SELECT lifted_at, released_at FROM timeline_hold ORDER BY id DESC LIMIT 100) AS newest)
