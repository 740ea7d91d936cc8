-- Story time, and the isolation level of the transaction, in one trip.
SELECT clock_timestamp(), current_setting('transaction_isolation')
