-- The schema of our tables: as an identifier, and as a text of a statement.
SELECT quote_ident(nspname), quote_literal(nspname)
FROM pg_class
JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE pg_class.oid = to_regclass('timeline_timelinerun')
