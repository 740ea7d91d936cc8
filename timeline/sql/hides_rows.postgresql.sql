-- Whether row-level security hides rows of one of these tables from this role.
SELECT COALESCE(bool_or(row_security_active(name::regclass)), false) FROM unnest(%(tables)s::text[]) AS name
