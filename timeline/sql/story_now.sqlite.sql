-- Story time, by the clock of the database. The statement is executed without parameters, so percent signs are not doubled.
SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')
