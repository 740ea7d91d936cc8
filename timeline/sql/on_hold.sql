-- What is on hold: scope and target of the open holds, each pair once, as one JSON list.
SELECT {kinds_on_hold}
