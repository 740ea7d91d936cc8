-- A statement as a function, so that PostgreSQL keeps its plan: see store/kept_statements.py, which puts the parts in.
CREATE OR REPLACE FUNCTION timeline_{name}({arguments}) RETURNS {returns} LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan {settings} AS $$
BEGIN
    RETURN QUERY
{statement};
END
$$
