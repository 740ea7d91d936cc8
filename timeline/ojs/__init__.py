"""The Open Job Specification, by HTTP: jobs are rows that workers of any language fetch. See ``docs/how-to/ojs.md``."""
