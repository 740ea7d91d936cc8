SELECT tgname
FROM pg_trigger
WHERE NOT tgisinternal
    AND tgenabled <> 'D'
    AND tgrelid IN (
        to_regclass('timeline_event'),
        to_regclass('timeline_timelinerun'),
        to_regclass('timeline_scheduledtask'),
        to_regclass('timeline_logentry')
    )
