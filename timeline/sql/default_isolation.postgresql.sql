-- The isolation level of transactions that ask for none.
SELECT current_setting('default_transaction_isolation')
