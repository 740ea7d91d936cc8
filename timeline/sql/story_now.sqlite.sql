-- Story time, by the database's own clock. It is given no parameters, so nothing here is doubled.
SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')
