-- What is on hold: scope and target of each open hold, once.
SELECT {kinds_on_hold}
