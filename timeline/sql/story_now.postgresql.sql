-- Story time, by the database's own clock.
SELECT clock_timestamp()
