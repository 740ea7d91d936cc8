-- Story time, by the clock of the database.
SELECT clock_timestamp()
