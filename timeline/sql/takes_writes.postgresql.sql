-- Whether this connection can write: not so on a replica, nor on a server that was made read-only after a failover.
SELECT current_setting('transaction_read_only') = 'off'
